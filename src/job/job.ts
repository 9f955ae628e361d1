// A job as callers see it.
import type { ErrorRecord } from "./outcome.ts";
import type { JobState, JobStatus } from "./states.ts";

/** How far a run says it is. */
export interface Progress {
  done: number;
  total: number | null;
  note: string | null;
  at: string;
}

/** A job as it stands. */
export interface Job {
  id: string;
  kind: string;
  queue: string;
  state: JobState;
  /** What people want to know, by the database's clock when it was read. */
  status: JobStatus;
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
  /** Until when its run owns it; null when it does not run. */
  leaseExpiresAt: Date | null;
}

/** One attempt that failed: when, where and why. */
export interface FailedAttempt {
  attempt: number;
  claimCount: number;
  startedAt: Date | null;
  failedAt: Date;
  durationMs: number | null;
  outcome: string;
  error: ErrorRecord | null;
}
