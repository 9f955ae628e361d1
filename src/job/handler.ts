// What a handler is given.
import type { ErrorRecord } from "./outcome.ts";

/** Why `job.signal` was aborted; it is the signal's `reason`, wrapped in an AbortReason error. */
export type AbortCause = "lease-lost" | "cancelled" | "timeout" | "shutdown";

/** The reason of an aborted `job.signal`: `signal.reason instanceof JobAborted && signal.reason.why === "shutdown"`. */
export class JobAborted extends Error {
  override readonly name = "JobAborted";
  readonly why: AbortCause;
  constructor(why: AbortCause) {
    super(TEXT[why]);
    this.why = why;
  }
}

const TEXT: Record<AbortCause, string> = {
  "lease-lost": "This run lost its lease: another worker may be running the job, and nothing written now is accepted.",
  cancelled: "The job was cancelled.",
  timeout: "The handler ran longer than the kind's timeout.",
  shutdown: "The worker is shutting down; the job goes back and uses no attempt.",
};

export interface JobLog {
  debug(message: string, fields?: object): void;
  info(message: string, fields?: object): void;
  warn(message: string, fields?: object): void;
  error(message: string, fields?: object): void;
}

export interface JobContext<Payload = unknown> {
  readonly id: string;
  readonly kind: string;
  readonly queue: string;
  readonly payload: Payload;
  /** 1 for the first try. */
  readonly attempt: number;
  readonly maxAttempts: number;
  readonly key: string | null;
  readonly group: string | null;
  /** When it was due. */
  readonly runAt: Date;
  /** Why the attempt before this one failed. */
  readonly lastError: ErrorRecord | null;
  /** The fencing token of this run, as text. */
  readonly token: string;
  /** Aborted on a lost lease, a cancel, a timeout or a shutdown; `signal.reason.why` tells which. */
  readonly signal: AbortSignal;
  readonly log: JobLog;
  /** Best effort, fenced, readable while the job runs. */
  progress(done: number, total?: number, note?: string): Promise<void>;
}
