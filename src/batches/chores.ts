// The chores of batches: what was handed back and not acked, batches that nobody is at work on, counters that are compared
// with the items, and what is past its retention.
import { type Chore, type ChoreContext, defineChore } from "../job/define-chore.ts";
import { fingerprintOf } from "../job/fingerprint.ts";
import type { HoldfastEvents } from "../metrics/events.ts";
import type { Duration } from "../shared/duration.ts";
import type { Emitter } from "../shared/emitter.ts";
import type { Advanced } from "../store/batches/advance.ts";
import { abandonBatch, cancelBatch } from "../store/batches/cancel.ts";
import { checkBatches } from "../store/batches/check.ts";
import { EXPIRED_ERROR, expireHanded } from "../store/batches/expire-handed.ts";
import {
  forgetBatches,
  nextPurgeable,
  purgeItems,
  purgeRest,
  purgeReturns,
  trimFeed,
  trimLog,
} from "../store/batches/purge.ts";
import { retryFailedStep } from "../store/batches/retry-failed.ts";
import { healBatch, lookOver, type NeedyBatch } from "../store/batches/tend.ts";
import type { Store } from "../store/sql.ts";

export interface BatchChoresInput {
  store: Store;
  events: Emitter<HoldfastEvents>;
  onAdvanced(batchId: string, advanced: Advanced): void;
  /** Jobs of items that run and have to stop. */
  onCancelled(jobIds: readonly string[]): void;
  purgeEvery: Duration;
}

const FIRST_ID = "00000000-0000-0000-0000-000000000000";
const PAGE = 200;
/** Tombstones that one statement removes, each with what is left of its log. */
const FORGET = 20;
/** How long the feed, and the log behind it, can be asked for. */
const KEEP_FEED_MS = 7 * 86_400_000;

export function makeBatchChores(input: BatchChoresInput): Chore[] {
  return [makeExpire(input), makeTend(input), makeCheck(input), makePurge(input)];
}

function makeExpire({ store, events, onAdvanced }: BatchChoresInput): Chore {
  const fingerprint = fingerprintOf(EXPIRED_ERROR);
  return defineChore("expire-hand-backs", {
    every: "30s",
    batchSize: 500,
    async run(context) {
      await context.inBatches("bounced", async (limit) => {
        const all = await expireHanded(store, limit, fingerprint);
        const rows = { bounced: 0, expired: 0, acked: 0, cancelled: 0 };
        for (const { batchId, queue, ackedAs, bounced, expired, acked, cancelled, advanced } of all) {
          onAdvanced(batchId, advanced);
          const { kind } = advanced;
          const end = (outcome: string, seqs: readonly number[]): void => {
            for (const seq of seqs) events.emit("item.ended", { batchId, seq, kind, queue, outcome, durationMs: null });
          };
          end("error", expired);
          end(ackedAs ?? "done", acked);
          end("cancelled", cancelled);
          if (bounced.length > 0) events.emit("item.bounced", { batchId, kind, seqs: bounced });
          rows.bounced += bounced.length;
          rows.expired += expired.length;
          rows.acked += acked.length;
          rows.cancelled += cancelled.length;
        }
        return { rows, more: rows.bounced + rows.expired + rows.acked + rows.cancelled >= limit };
      });
    },
  });
}

function makeTend({ store, events, onAdvanced, onCancelled }: BatchChoresInput): Chore {
  async function cancel(id: string): Promise<void> {
    const result = await cancelBatch(store, id, null);
    if (result?.running.length) onCancelled(result.running);
    if (result?.advanced) onAdvanced(id, result.advanced);
  }

  /** What was done about it, if anything. */
  async function tend({ id, kind, need }: NeedyBatch): Promise<string | undefined> {
    switch (need) {
      case null:
        return undefined;
      case "abandoned":
        if (!(await abandonBatch(store, id))) return undefined;
        await cancel(id);
        return "abandoned";
      case "cancel":
        await cancel(id);
        return "cancelled";
      case "retry": {
        const step = await retryFailedStep(store, id, null, false);
        if (step?.advanced) onAdvanced(id, step.advanced);
        return "retried";
      }
      case "heal": {
        const healed = await healBatch(store, id);
        if (!healed) return undefined;
        onAdvanced(id, healed.advanced);
        events.emit("batch.healed", { batchId: id, kind, lost: healed.lost.length });
        return "healed";
      }
    }
  }

  /** Where the last run stopped. */
  let after = FIRST_ID;
  return defineChore("tend-batches", {
    every: "5s",
    async run(context) {
      for (;;) {
        context.signal.throwIfAborted();
        const page = await lookOver(store, after, PAGE);
        for (const batch of page) {
          const done = await tend(batch);
          if (done !== undefined) context.count(done, 1);
        }
        after = page.length < PAGE ? FIRST_ID : page.at(-1)!.id;
        if (after === FIRST_ID) return;
        if (!context.hasTime()) return { nextInMs: 500, more: true };
      }
    },
  });
}

function makeCheck({ store, events }: BatchChoresInput): Chore {
  let after = FIRST_ID;
  return defineChore("check-batches", {
    every: "5m",
    async run(context) {
      for (;;) {
        context.signal.throwIfAborted();
        const { checked, next } = await checkBatches(store, after, PAGE, () => context.hasTime());
        context.count("checked", checked.length);
        for (const { id: batchId, kind, differences } of checked) {
          for (const difference of differences) events.emit("batch.miscounted", { batchId, kind, ...difference });
          context.count("miscounted", differences.length);
        }
        after = next ?? FIRST_ID;
        if (next === null || !context.hasTime()) return;
      }
    },
  });
}

function makePurge({ store, purgeEvery }: BatchChoresInput): Chore {
  /** True: there may be another one. */
  async function purgeOne(context: ChoreContext): Promise<boolean> {
    const due = await nextPurgeable(store);
    if (!due) return false;
    let { most } = due;
    await context.inBatches("items", async (limit) => {
      if (most <= 0) return 0;
      const count = await purgeItems(store, due.id, most, limit);
      most -= limit;
      return { rows: count, more: most > 0 };
    });
    await context.inBatches("returns", (limit) => purgeReturns(store, due.id, limit));
    await context.inBatches("log", (limit) => trimLog(store, due.id, KEEP_FEED_MS, limit));
    if (most > 0) return false;
    if (await purgeRest(store, due.id)) context.count("batches", 1);
    return context.hasTime();
  }

  let after = FIRST_ID;
  return defineChore("purge-batches", {
    every: purgeEvery,
    async run(context) {
      while (await purgeOne(context)) context.signal.throwIfAborted();
      const page = await lookOver(store, after, PAGE);
      after = page.length < PAGE ? FIRST_ID : page.at(-1)!.id;
      for (const { id } of page) await context.inBatches("log", (limit) => trimLog(store, id, KEEP_FEED_MS, limit));
      await context.inBatches("feed", (limit) => trimFeed(store, KEEP_FEED_MS, limit));
      await context.inBatches("forgotten", async (limit) => {
        const rows = await forgetBatches(store, KEEP_FEED_MS, Math.min(limit, FORGET));
        return { rows, more: rows === FORGET };
      });
      return (await nextPurgeable(store)) ? { more: true } : undefined;
    },
  });
}
