// One run of one job in this process: what the claim gave, and what may still happen to it.
import type { AnyJobKind } from "../job/define-job.ts";
import { type AbortCause, JobAborted } from "../job/handler.ts";
import type { ClaimedJob } from "../store/jobs/claim.ts";

export interface Run {
  readonly job: ClaimedJob;
  readonly kind: AnyJobKind;
  readonly token: string;
  readonly leaseMs: number;
  /** Monotonic milliseconds. */
  readonly startedAt: number;
  readonly deadline: number;
  /** Why the run was aborted; the first reason stays. */
  aborted: AbortCause | undefined;
  /** The outcome is on its way or written; nothing else may be decided about it. */
  settling: boolean;
  /** It counts against the worker's concurrency. */
  hasSlot: boolean;
  controller: AbortController | undefined;
}

export function makeRun(job: ClaimedJob, kind: AnyJobKind, token: string, now: number): Run {
  return {
    job,
    kind,
    token,
    leaseMs: kind.leaseMs,
    startedAt: now,
    deadline: now + kind.timeoutMs,
    aborted: undefined,
    settling: false,
    hasSlot: true,
    controller: undefined,
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
