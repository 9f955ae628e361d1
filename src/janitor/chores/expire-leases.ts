// Recovers work whose worker died. In every process and beside all other chores: recovery waits for nobody's turn. Awake
// when the next lease is due; while there is none, as often as the shortest lease it has seen lasts.
import { type Chore, defineChore } from "../../job/define-chore.ts";
import type { HoldfastEvents } from "../../metrics/events.ts";
import type { Emitter } from "../../shared/emitter.ts";
import type { Advanced } from "../../store/batches/advance.ts";
import { endItemsSetApart } from "../../store/batches/end-items.ts";
import {
  type Ended,
  endSetApart,
  expireIfOverdue,
  nextExpiry,
  type Refused,
} from "../../store/janitor/expire-leases.ts";
import type { KeepEnded } from "../../store/jobs/keep-ended.ts";
import type { Store } from "../../store/sql.ts";

export interface ExpireLeasesInput {
  store: Store;
  events: Emitter<HoldfastEvents>;
  /** For how long this process has seen the database without interruption. */
  seenForMs(): number;
  /** The workers of this process. */
  liveWorkers(): string[];
  /** The shortest lease that they take. */
  shortestLeaseMs(): number;
  /** Recovered jobs are due again. */
  onRecovered(kinds: string[]): void;
  /** Jobs were buried or cancelled; these were admitted in their place. */
  onEnded(heirs: string[]): void;
  /** An item's batch moved on. */
  onAdvanced(batchId: string, advanced: Advanced): void;
  keepEnded: KeepEnded;
}

const BATCH = 100;

export function makeExpireLeases(input: ExpireLeasesInput): Chore {
  const { store, events } = input;
  let shortestSeenMs = Infinity;
  const isEmbedded = store.tier === "embedded";
  function report({ id, kind, queue, attempt, error, verdict }: Ended): void {
    const end = { jobId: id, kind, queue, attempt, workerId: null, durationMs: null };
    if (verdict === "dead") events.emit("job.dead", { ...end, error: error ?? undefined });
    else events.emit("job.cancelled", end);
  }
  return defineChore("expire-leases", {
    // Every few seconds, unless a lease is shorter than that: an idle system stays idle.
    every: "4s",
    batchSize: BATCH,
    everywhere: true,
    async run(context) {
      const refused: Refused = new Map();
      const steps = [
        () =>
          context.inBatches("recovered", async (limit) => {
            const expired = await expireIfOverdue(store, {
              limit,
              seenForMs: input.seenForMs(),
              atOnce: isEmbedded,
              // One process has an embedded database: its own workers are alive, however late their beats.
              spare: isEmbedded ? input.liveWorkers() : [],
            });
            for (const { id, kind } of expired) events.emit("lease.expired", { jobId: id, kind });
            if (expired.length > 0) input.onRecovered([...new Set(expired.map((job) => job.kind))]);
            return expired.length;
          }),
        () =>
          context.inBatches("ended", async (limit) => {
            const before = refused.size;
            const ended = await endSetApart(store, limit, input.keepEnded, refused);
            for (const job of ended) report(job);
            if (ended.length > 0) input.onEnded(ended.flatMap(({ heir }) => heir ?? []));
            return { rows: ended.length, more: ended.length + refused.size - before >= limit };
          }),
        () =>
          context.inBatches("ended", async (limit) => {
            const ended = await endItemsSetApart(store, limit);
            for (const { batchId, items, advanced } of ended) {
              if (!advanced) continue;
              input.onAdvanced(batchId, advanced);
              if (items.some(({ verdict }) => verdict === "release")) input.onRecovered([advanced.kind]);
            }
            return ended.reduce((sum, { items }) => sum + items.length, 0);
          }),
      ];
      const errors: unknown[] = [];
      // None waits for another to be well: what is refused to one would keep the others from their turn for ever.
      for (const step of steps) await step().catch((error: unknown) => errors.push(error));
      errors.push(...refused.values());
      if (errors.length > 0) throw errors[0];
      const { inMs, shortestMs } = await nextExpiry(store);
      shortestSeenMs = Math.min(shortestSeenMs, shortestMs, input.shortestLeaseMs());
      return { nextInMs: Math.max(100, Math.min(inMs, shortestSeenMs)) };
    },
  });
}
