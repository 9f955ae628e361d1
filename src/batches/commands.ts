// What a client that works offline may ask for, and what it is told.
import type { AnyBatchKind } from "../job/define-batch.ts";
import type { FieldMeta } from "../job/merge-fields.ts";

/** One command of a client that keeps a copy; `n` is its number, counted by the client from 1. */
export type BatchCommand = { n: number } & (
  | {
      type: "create";
      kind: string;
      items: readonly unknown[];
      key?: string;
      total?: number;
      open?: boolean;
      fields?: Record<string, unknown>;
    }
  | { type: "pause" | "resume" | "cancel" | "retry" | "delete"; batch: string }
  | { type: "outcome"; batch: string; seq: number; outcome: string; result?: unknown; error?: string }
  | { type: "set"; batch: string; fields: Record<string, unknown>; meta?: Record<string, FieldMeta> }
);

/** Commands that a client wrote, perhaps while it was offline, in its own order. */
export interface ApplyInput {
  owner: string;
  /** The device, or whatever keeps the count of its commands. */
  client: string;
  /** Counted by the client from 1, without gaps. */
  commands: readonly BatchCommand[];
  /** What it may create. */
  kinds: readonly AnyBatchKind[];
}

/** What became of one command: applied, known from before, or refused with the reason. */
export interface AppliedCommand {
  n: number;
  /** known: it was applied before. */
  status: "applied" | "known" | "refused";
  /** The batch it is about. */
  batch?: string;
  error?: { code: string; message: string; hint: string };
}

/** The answer to `hf.batches.apply`: what became of each command. */
export interface Applied {
  /** The last command of this client that was applied: what comes next is one more. */
  applied: number;
  results: AppliedCommand[];
}
