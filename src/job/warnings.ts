// What is allowed in the definition of a kind and still probably a mistake. Each warning names both values and what to set;
// work() logs them when it starts.
import type { AnyJobKind } from "./define-job.ts";

export type KindWarningCode =
  "call-timeout-not-below-lease" | "lease-below-a-second" | "timeout-below-lease" | "keys-shorter-than-jobs";

export interface KindWarning {
  code: KindWarningCode;
  message: string;
}

type Watched = Pick<AnyJobKind, "kind" | "leaseMs" | "timeoutMs" | "callTimeoutMs" | "keepDoneMs" | "keepKeysMs">;

const SECOND_MS = 1_000;

export function kindWarnings(kinds: readonly Watched[]): KindWarning[] {
  return kinds.flatMap((kind) => [
    ...callTimeoutNotBelowLease(kind),
    ...leaseBelowASecond(kind),
    ...timeoutBelowLease(kind),
    ...keysShorterThanJobs(kind),
  ]);
}

/** Where beats cannot come from a thread, such a call can outlive the lease without a sign of life. */
function callTimeoutNotBelowLease({ kind, callTimeoutMs, leaseMs }: Watched): KindWarning[] {
  if (callTimeoutMs === undefined || callTimeoutMs < leaseMs) return [];
  const message =
    `${kind}: callTimeout is ${written(callTimeoutMs)} and lease is ${written(leaseMs)}: one call may take as long as the lease, ` +
    `so that a call that blocks the process can lose it. ` +
    `Set lease to more than ${written(callTimeoutMs)} (3 times as much is a good start), or callTimeout below ${written(leaseMs)}.`;
  return [{ code: "call-timeout-not-below-lease", message }];
}

function leaseBelowASecond({ kind, leaseMs }: Watched): KindWarning[] {
  if (leaseMs >= SECOND_MS) return [];
  const message =
    `${kind}: lease is ${written(leaseMs)}, so beats come every ${Math.round(leaseMs / 3)}ms (lease / 3): a pause of ` +
    `the network or of the process that is longer than ${written(leaseMs)} loses the job's run. Set lease to ${written(SECOND_MS)} or more.`;
  return [{ code: "lease-below-a-second", message }];
}

function timeoutBelowLease({ kind, timeoutMs, leaseMs }: Watched): KindWarning[] {
  if (timeoutMs >= leaseMs) return [];
  const message =
    `${kind}: timeout is ${written(timeoutMs)} and lease is ${written(leaseMs)}: a handler is given up before its lease ` +
    `could ever run out, and after a crash the job waits longer than it may run. ` +
    `Set lease to ${written(timeoutMs)} or less, or timeout to ${written(leaseMs)} or more.`;
  return [{ code: "timeout-below-lease", message }];
}

/** The ledger would forget a key whose finished job can still be read: the same key would make a second job. */
function keysShorterThanJobs({ kind, keepKeysMs, keepDoneMs }: Watched): KindWarning[] {
  if (keepKeysMs === null || (keepDoneMs !== null && keepKeysMs >= keepDoneMs)) return [];
  const message =
    `${kind}: keepKeys is ${written(keepKeysMs)} and keepDone is ${written(keepDoneMs)}: a key is free again while its finished ` +
    `job can still be read. Set keepKeys to ${written(keepDoneMs)} or more, or keepDone to ${written(keepKeysMs)} or less.`;
  return [{ code: "keys-shorter-than-jobs", message }];
}

const UNITS = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["m", 60_000],
  ["s", 1_000],
] as const;

/** As it could be written in an option: nothing is rounded. null: for ever. */
function written(ms: number | null): string {
  if (ms === null) return '"forever"';
  const unit = UNITS.find(([, size]) => ms >= size && ms % size === 0);
  return unit ? `"${ms / unit[1]}${unit[0]}"` : `"${ms}ms"`;
}
