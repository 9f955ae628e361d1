// What a handler is given.
import type { Duration } from "../shared/duration.ts";
import type { Transaction } from "./caller-transaction.ts";
import type { ErrorRecord } from "./outcome.ts";

/** Why `job.signal` was aborted: the `why` of its reason, which is a JobAborted. */
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

/** Writes to the `log` of `open()`, with the job's id, kind and attempt. */
export interface JobLog {
  debug(message: string, fields?: object): void;
  info(message: string, fields?: object): void;
  warn(message: string, fields?: object): void;
  error(message: string, fields?: object): void;
}

/** What a handler is given: the job, its signal, and the means to write under its lease. */
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

  /** Commits only while this run holds its lease; otherwise LeaseLost, and nothing is written. */
  transaction<T>(work: (tx: JobTransaction) => Promise<T>): Promise<T>;
  /** The same fence for a transaction that somebody else opened: call it first, inside that transaction. */
  fence(tx: Transaction): Promise<void>;
  /** Runs once in the job's life: its result is recorded in its own commit and returned by every later attempt. */
  step<T>(name: string, work: (tx: JobTransaction) => Promise<T>): Promise<T>;
  /** Effects and completion in one commit; inside `job.transaction`, or a transaction after `job.fence`. */
  complete(tx: Transaction, result?: unknown): Promise<void>;
  /** Yields what is not saved yet; resumes after the last chunk that committed. */
  chunks<Item>(name: string, items: Iterable<Item>, options?: ChunkOptions<Item>): AsyncIterable<Chunk<Item>>;
  /** Keeps a cursor of the handler's own, in a fenced commit of its own or together with rows written through `tx`. */
  checkpoint(value: unknown, options?: { name?: string; tx?: JobTransaction }): Promise<void>;
  /** What the last `checkpoint` of any attempt kept; undefined if there is none, or the payload is another one now. */
  lastCheckpoint<Value>(name?: string): Promise<Value | undefined>;
  /** Results built piece by piece that become canonical in one commit. */
  generation(unit: string): Promise<Generation>;
}

/** One parameterised statement at a time, inside the fenced transaction. */
export interface JobTransaction {
  query<Row = Record<string, unknown>>(
    text: string,
    values?: readonly unknown[],
  ): Promise<{ rows: Row[]; rowCount: number }>;
}

/** What `job.chunks` takes. */
export interface ChunkOptions<Item> {
  /** Items per chunk; it shrinks when a call is too slow and grows back. Default 32. */
  size?: number;
  /** How long `chunk.call` may take. */
  callTimeout?: Duration;
  /** Identifies an item, so that a list that changed between attempts resumes with what is not saved. Default: its place. */
  key?: (item: Item) => string;
  /** What the progress says beside the figures. Default: the name of the chunks. */
  note?: string;
}

/** What `job.chunks` yields: some of the items, with the means to save what became of them. */
export interface Chunk<Item> {
  readonly items: readonly Item[];
  /** The place of the first item among all items. */
  readonly start: number;
  /** Aborted when the run is, and inside `call` when the call timeout is over. */
  readonly signal: AbortSignal;
  /**
   * Runs the slow part under the call timeout. Undefined: it was too slow; skip this chunk (`continue`), and the next
   * one starts at the same place with half as many items. A single item that is too slow is an error.
   */
  call<T>(work: (items: readonly Item[], signal: AbortSignal) => Promise<T>): Promise<T | undefined>;
  /** The rows, the checkpoint and the progress in one fenced commit, which also renews the lease. */
  save(work?: (tx: JobTransaction) => Promise<void>): Promise<void>;
}

/** What `job.generation` gives: results that are built piece by piece, and shown all at once. */
export interface Generation {
  /** The one this job builds; the same in every attempt with the same payload. */
  readonly number: string;
  /** What readers saw when this one began; "0" if nothing. */
  readonly previous: string;
  /** Makes this generation the current one, inside a fenced transaction. False if a newer one is current. */
  makeCurrent(tx: JobTransaction): Promise<boolean>;
}
