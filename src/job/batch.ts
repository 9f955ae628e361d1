// What people see of a batch and of its items.
import type { ErrorRecord } from "./outcome.ts";

export const BATCH_STATES = ["queued", "running", "paused", "done", "cancelled"] as const;
/** Where a batch stands; docs/batch-states.md has the moves. */
export type BatchState = (typeof BATCH_STATES)[number];

/** Who may move a batch from where to where. docs/batch-states.md draws the same. */
export const BATCH_TRANSITIONS = [
  { from: "queued", to: "running", by: "start" },
  { from: "queued", to: "paused", by: "pause" },
  { from: "running", to: "paused", by: "pause" },
  { from: "paused", to: "running", by: "resume" },
  { from: "paused", to: "queued", by: "resume" },
  { from: "queued", to: "done", by: "finish" },
  { from: "running", to: "done", by: "finish" },
  { from: "paused", to: "done", by: "finish" },
  { from: "queued", to: "cancelled", by: "cancel" },
  { from: "running", to: "cancelled", by: "cancel" },
  { from: "paused", to: "cancelled", by: "cancel" },
  { from: "done", to: "running", by: "retry-failed" },
] as const satisfies readonly { from: BatchState; to: BatchState; by: string }[];

/** `pending`, `running`, `handed-over`, or the outcome the item came to. */
export type ItemState = string;

/** Who may move an item from where to where; `outcome` stands for any that its kind has. */
export const ITEM_TRANSITIONS = [
  { from: "pending", to: "running", by: "claim" },
  { from: "running", to: "outcome", by: "settle" },
  { from: "running", to: "handed-over", by: "hand-back" },
  { from: "running", to: "pending", by: "retry" },
  { from: "running", to: "error", by: "settle" },
  { from: "running", to: "cancelled", by: "cancel" },
  { from: "pending", to: "error", by: "bury" },
  { from: "pending", to: "cancelled", by: "cancel" },
  { from: "handed-over", to: "outcome", by: "ack" },
  { from: "handed-over", to: "pending", by: "expire" },
  { from: "handed-over", to: "error", by: "expire" },
  { from: "handed-over", to: "cancelled", by: "expire" },
  { from: "error", to: "pending", by: "retry-failed" },
] as const;

/** What an outcome means for the counters. */
export interface OutcomeRule {
  /** Another outcome that this is also counted as. */
  countsAs?: string;
  /** Worth a second look. */
  warning?: boolean;
}

/** A batch as it stands: its state and its counters. */
export interface Batch {
  id: string;
  kind: string;
  queue: string;
  owner: string | null;
  key: string | null;
  state: BatchState;
  /** Why it was cancelled, if not because somebody asked. */
  reason: string | null;
  /** How many items there will be: what was declared, or what there are. */
  total: number;
  declared: number | null;
  added: number;
  /** No more items can be added. */
  closed: boolean;
  /** pending, running, handed-over, error, cancelled, and one for each outcome of the kind. */
  counts: Record<string, number>;
  /** The same with each outcome counted as what its kind says it counts as. */
  countedAs: Record<string, number>;
  warnings: number;
  /** Items that have come to an outcome. */
  ended: number;
  /** Items per second in the last half minute to minute; null while there is nothing to say. */
  rate: number | null;
  etaMs: number | null;
  concurrency: number;
  attempts: number;
  priority: number;
  outcomes: Record<string, OutcomeRule>;
  /** What an item came to that was acked without a word about it. */
  ackedAs: string;
  /** What the owner keeps with it. */
  fields: Record<string, unknown>;
  /** How often it became done: once, and once more for each retry of what failed. */
  completions: number;
  /** Goes up with every change. */
  version: string;
  createdAt: Date;
  startedAt: Date | null;
  pausedAt: Date | null;
  closedAt: Date | null;
  finishedAt: Date | null;
}

/** One item of a batch as it stands. */
export interface BatchItem {
  /** Its place, from 1. */
  seq: number;
  state: ItemState;
  payload: unknown;
  attempt: number;
  /** How often it came back because nobody acked what was handed over. */
  bounces: number;
  error: ErrorRecord | null;
  result: unknown;
  jobId: string | null;
  /** What was handed over. */
  parcelId: string | null;
  handedUntil: Date | null;
  /** When it is due, while it has a job. */
  runAt: Date | null;
  startedAt: Date | null;
  endedAt: Date | null;
}
