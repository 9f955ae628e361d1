// Every event Holdfast reports, with its fields. docs/events.md lists the same names; a test keeps the two equal.
// Logs, metrics and screens are listeners; nothing else is told what happens.
import type { ErrorRecord } from "../job/outcome.ts";

interface JobEvent {
  jobId: string;
  kind: string;
  queue: string;
}

interface RunEvent extends JobEvent {
  attempt: number;
  workerId: string;
}

/** null: the janitor ended it, after its worker had died. */
interface EndEvent extends JobEvent {
  attempt: number;
  workerId: string | null;
  durationMs: number | null;
}

interface ParcelEvent {
  parcelId: string;
  recipient: string;
  size: number;
}

/** What `hf.on` can listen to; docs/events.md says when each is told. */
export interface HoldfastEvents {
  "job.enqueued": JobEvent & { created: boolean; conflict: boolean };
  /** A statement that stored jobs for enqueues of this process. */
  "enqueue.made": { jobs: number; tookMs: number };
  "job.claimed": RunEvent & { waitedMs: number };
  /** A worker here asked for jobs; `error`: it got no answer. What enqueues hand over to it is not asked for. */
  "claim.made": { workerId: string; jobs: number; tookMs: number; error: unknown };
  /** The workers here were told that something may be due: by this process, or by another. */
  "wake.heard": { from: "here" | "elsewhere" };
  "job.done": RunEvent & { durationMs: number };
  "job.retrying": RunEvent & { durationMs: number; error: ErrorRecord | undefined; runAt: Date };
  "job.snoozed": RunEvent & { durationMs: number; runAt: Date };
  "job.released": RunEvent & { durationMs: number };
  "job.dead": EndEvent & { error: ErrorRecord | undefined };
  "job.cancelled": EndEvent;
  /** It ran, and an enqueue with the same coalesce key arrived meanwhile: it runs again. */
  "job.again": RunEvent & { durationMs: number };
  /** The run's result was refused, or the lease ran out under it. */
  "lease.lost": RunEvent;
  /** A beat for the leases of a worker here; `error`: it got no answer, and nobody knows whether it was heard. */
  "lease.beat": { workerId: string; renewed: number; lost: number; tookMs: number | null; error: unknown };
  "lease.expired": { jobId: string; kind: string };
  "parcel.put": ParcelEvent & { created: boolean; conflict: boolean };
  /** Somebody got all of it. */
  "parcel.fetched": ParcelEvent;
  /** For the first time. `gone`: its time was over by then. */
  "parcel.acked": ParcelEvent & { gone: boolean };
  /** Its time is over and nobody acked it. */
  "parcel.expired": ParcelEvent & { name: string; reason: "never fetched" | "fetched, never acked" };
  /** Parcels of a recipient do not move, and why. Told once until they move again. */
  "inbox.stuck": { recipient: string; code: string; message: string; forMs: number };
  "batch.created": { batchId: string; kind: string; owner: string | null; total: number | null };
  /** It is done, or cancelled and nothing of it runs any more. */
  "batch.finished": { batchId: string; kind: string; owner: string | null; state: "done" | "cancelled" };
  /** Somebody cancelled it here: so many items that waited came to nothing. */
  "batch.cancelled": { batchId: string; kind: string; items: number };
  /** An item came to an outcome, or was handed over. */
  "item.ended": {
    batchId: string;
    seq: number;
    kind: string;
    queue: string;
    outcome: string;
    /** null: the janitor, a person or the owner ended it, not a run. */
    durationMs: number | null;
    /** Why, if a run ended it as an error. */
    error?: ErrorRecord | undefined;
  };
  /** Nobody acked what was handed back in time: the items wait again. */
  "item.bounced": { batchId: string; kind: string; seqs: number[] };
  /** Items were nowhere, or slots were not used, and the janitor here put it right. It must not happen. */
  "batch.healed": { batchId: string; kind: string; lost: number };
  /** A counter was not what the items say. It must not happen. */
  "batch.miscounted": { batchId: string; kind: string; what: string; kept: number; counted: number };
  "worker.started": { workerId: string; kinds: string[]; concurrency: number };
  "worker.stopped": { workerId: string };
  /** A chore of the janitor ran here; `rows` says how many came to which end. */
  "chore.ran": { chore: string; rows: Record<string, number>; tookMs: number; error: string | undefined };
  /** Something failed that Holdfast goes on after: a lost connection, a chore, a listener. */
  trouble: { where: string; error: unknown };
}

export const EVENT_NAMES = [
  "job.enqueued",
  "enqueue.made",
  "job.claimed",
  "claim.made",
  "wake.heard",
  "job.done",
  "job.retrying",
  "job.snoozed",
  "job.released",
  "job.dead",
  "job.cancelled",
  "job.again",
  "lease.lost",
  "lease.beat",
  "lease.expired",
  "parcel.put",
  "parcel.fetched",
  "parcel.acked",
  "parcel.expired",
  "inbox.stuck",
  "batch.created",
  "batch.finished",
  "batch.cancelled",
  "item.ended",
  "item.bounced",
  "batch.healed",
  "batch.miscounted",
  "worker.started",
  "worker.stopped",
  "chore.ran",
  "trouble",
] as const satisfies readonly (keyof HoldfastEvents)[];
