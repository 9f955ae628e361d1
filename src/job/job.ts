// A job as callers see it.
import type { ErrorRecord } from "./outcome.ts";
import type { JobState } from "./states.ts";

export interface Progress {
  done: number;
  total: number | null;
  note: string | null;
  at: string;
}

export interface Job {
  id: string;
  kind: string;
  queue: string;
  state: JobState;
  payload: unknown;
  result: unknown;
  priority: number;
  /** Tries used so far; a pending job with attempt > 0 is retrying. */
  attempt: number;
  maxAttempts: number;
  /** How often it was claimed, crashes and releases included. Never reset. */
  claimCount: number;
  key: string | null;
  group: string | null;
  coalesceKey: string | null;
  progress: Progress | null;
  lastError: ErrorRecord | null;
  createdAt: Date;
  runAt: Date;
  startedAt: Date | null;
  finishedAt: Date | null;
  cancelRequestedAt: Date | null;
}

export interface FailedAttempt {
  attempt: number;
  claimCount: number;
  startedAt: Date | null;
  failedAt: Date;
  durationMs: number | null;
  outcome: string;
  error: ErrorRecord | null;
}
