// How long what stays, and for which queue: what a kind says for itself wins over what its queue says, and that over the
// default for all.
import type { AnyJobKind } from "../job/define-job.ts";
import type { ResolvedOptions } from "../options.ts";
import type { KeepDead } from "../store/janitor/purge.ts";
import type { KeepEnded } from "../store/jobs/keep-ended.ts";

type Kept = Pick<ResolvedOptions, "keepDoneMs" | "keepEndedMs" | "leaseMs" | "queues">;

/** The kind as this client runs it, for jobs in this queue. */
export function withDefaults(kind: AnyJobKind, options: Kept, queue = kind.queue): AnyJobKind {
  const ofQueue = options.queues[queue]?.keepDoneMs;
  const keepDoneMs = !kind.unset.includes("keepDone")
    ? kind.keepDoneMs
    : ofQueue === undefined
      ? options.keepDoneMs
      : ofQueue;
  const leaseMs = kind.unset.includes("lease") ? options.leaseMs : kind.leaseMs;
  if (keepDoneMs === kind.keepDoneMs && leaseMs === kind.leaseMs) return kind;
  return Object.create(kind, { keepDoneMs: { value: keepDoneMs }, leaseMs: { value: leaseMs } }) as AnyJobKind;
}

/** The same, remembered: it is asked for every job that is in another queue than its kind's. */
export function makeInQueue(options: Kept): (kind: AnyJobKind, queue: string) => AnyJobKind {
  const known = new WeakMap<AnyJobKind, Map<string, AnyJobKind>>();
  return (kind, queue) => {
    // Queues that nothing was said about are all alike.
    const name = Object.hasOwn(options.queues, queue) ? queue : "";
    let ofKind = known.get(kind);
    if (!ofKind) known.set(kind, (ofKind = new Map()));
    let made = ofKind.get(name);
    if (!made) ofKind.set(name, (made = withDefaults(kind, options, name)));
    return made;
  };
}

export function keepEndedOf({ keepEndedMs, queues }: Kept): KeepEnded {
  const own = Object.entries(queues).flatMap(([queue, { keepEndedMs: ms }]) => (ms === undefined ? [] : [[queue, ms]]));
  return { ms: keepEndedMs, queues: Object.fromEntries(own) as Record<string, number | null> };
}

/** Queues whose dead jobs are purged; for all others they stay until a person puts them away. */
export function keepDeadOf({ queues }: Kept): KeepDead[] {
  return Object.entries(queues).flatMap(([queue, { keepDeadMs }]) =>
    keepDeadMs === undefined || keepDeadMs === null ? [] : [{ queue, keepMs: keepDeadMs }],
  );
}
