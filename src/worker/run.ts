// One run of one job in this process: what the claim gave, and what may still happen to it.
import type { AnyJobKind } from "../job/define-job.ts";
import { type AbortCause, JobAborted } from "../job/handler.ts";
import type { Outcome } from "../job/outcome.ts";
import type { Advanced } from "../store/batches/advance.ts";
import type { ClaimedJob } from "../store/jobs/claim.ts";
import type { LeaseId } from "../store/jobs/beat.ts";
import type { Verdict } from "../store/jobs/settle.ts";

/** A lease this process holds, with the runs under it. */
export interface HeldLease extends LeaseId {
  runs: Run[];
  /** How many of them are not over. */
  open: number;
  /** Local time until which the database surely has not given the jobs away. */
  goodUntil: number;
  /** Since when its claim is known to have been made, by `clockMs`; Infinity while that is being asked. */
  knownSince: number;
  /** Its jobs' rows are not marked as running yet. */
  isLight: boolean;
  /** While they are being marked. */
  marking?: Promise<void> | undefined;
  /** A run was left behind: the row must run out, or nobody would ever recover that job. */
  mustExpire: boolean;
}

export interface Run {
  readonly job: ClaimedJob;
  readonly kind: AnyJobKind;
  readonly token: string;
  readonly leaseMs: number;
  /** A suspect that has the process to itself. */
  readonly alone: boolean;
  /** Monotonic milliseconds. */
  readonly startedAt: number;
  readonly deadline: number;
  lease: HeldLease | undefined;
  /** Why the run was aborted; the first reason stays. */
  aborted: AbortCause | undefined;
  /** Set once: from then on nothing else may be decided about the run. */
  outcome: Outcome | undefined;
  /** What the handler's own transaction made of the job, if that has committed. */
  completedAs: Verdict | undefined;
  /** Of a group: who was admitted in its place by that transaction, until somebody has been told. */
  heir: string | null;
  /** That transaction was ours, and has surely committed. */
  hasCompleted: boolean;
  /** Set by whoever wants to know at once that it has. */
  onCompleted: ((run: Run) => void) | undefined;
  /** Each rolls back a fenced transaction that is open now: the worker decided without its handler. */
  interrupts: Set<() => void> | undefined;
  /** Of an item: what that set off in its batch. */
  advanced: Advanced | undefined;
  /** The outcome's result as JSON text. */
  result: string | undefined;
  /** It counts against the worker's concurrency. */
  hasSlot: boolean;
  controller: AbortController | undefined;
  /** Of the payload, once somebody asked. */
  version: string | undefined;
}

/**
 * What it runs belongs to a batch. The name of the kind does not say so: SQL may enqueue a job of any kind, and onDead and onDone
 * may name any.
 */
export function isItem(run: Run): boolean {
  return run.kind.batch !== undefined && typeof run.job.batch_id === "string";
}

/** Between two tries to settle these: after an outage, nothing is given away for one lease, and by then it must be settled. */
export function longestPauseMs(runs: readonly Run[]): number {
  return Math.min(2_000, ...runs.map((run) => run.leaseMs / 8));
}

export interface RunInput {
  job: ClaimedJob;
  kind: AnyJobKind;
  token: string;
  alone: boolean;
  now: number;
}

export function makeRun({ job, kind, token, alone, now }: RunInput): Run {
  return {
    job,
    kind,
    token,
    leaseMs: kind.leaseMs,
    alone,
    startedAt: now,
    deadline: now + kind.timeoutMs,
    lease: undefined,
    aborted: undefined,
    outcome: undefined,
    completedAs: undefined,
    heir: null,
    hasCompleted: false,
    onCompleted: undefined,
    interrupts: undefined,
    advanced: undefined,
    result: undefined,
    hasSlot: true,
    controller: undefined,
    version: undefined,
  };
}

/** Made when a handler first asks for it: most never do, and it costs as much as the rest of a small job. */
export function signalOf(run: Run): AbortSignal {
  if (!run.controller) {
    run.controller = new AbortController();
    if (run.aborted) run.controller.abort(new JobAborted(run.aborted));
  }
  return run.controller.signal;
}

export function abortRun(run: Run, why: AbortCause): void {
  if (run.aborted) return;
  run.aborted = why;
  run.controller?.abort(new JobAborted(why));
}
