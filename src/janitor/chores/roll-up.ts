// Writes the figures that screens, charts and metrics read, so that none of them counts: how deep the queues are, and what
// runs came to by minute and by hour.
import { type Chore, defineChore } from "../../job/define-chore.ts";
import type { Tally } from "../../metrics/tally.ts";
import {
  countDepths,
  type Depth,
  latestDepths,
  nothing,
  type TakenDepth,
  trimDepths,
  writeDepths,
} from "../../store/stats/depths.ts";
import { addRunCounts, rollUpHours, trimRunCounts } from "../../store/stats/run-counts.ts";
import type { Store } from "../../store/sql.ts";

/** Counting may take this share of the time. */
const SHARE = 0.02;

export function makeMeasureQueues(store: Store): Chore {
  return defineChore("measure-queues", {
    every: "1m",
    async run() {
      const began = performance.now();
      const [before, now] = [await latestDepths(store), await countDepths(store)];
      const counted = new Map(now.map((depth) => [depth.queue, depth]));
      // What had jobs and has none now is a figure too.
      for (const { queue } of before) if (!counted.has(queue)) counted.set(queue, nothing(queue));
      const known = new Map(before.map((depth) => [depth.queue, depth]));
      await writeDepths(
        store,
        [...counted.values()].filter((depth) => !isSame(depth, known.get(depth.queue))),
      );
      return { nextInMs: Math.max(10_000, (performance.now() - began) / SHARE) };
    },
  });
}

function isSame(now: Depth, before: TakenDepth | undefined): boolean {
  return (
    before !== undefined &&
    (["ready", "scheduled", "retrying", "running", "dead", "paused", "estimated"] as const).every(
      (figure) => now[figure] === before[figure],
    ) &&
    now.oldestReadyAt?.getTime() === before.oldestReadyAt?.getTime()
  );
}

/** Every process has counted its own runs. */
export function makeAddRunCounts(store: Store, tally: Tally): Chore {
  return defineChore("add-run-counts", {
    every: "10s",
    everywhere: true,
    async run() {
      const rows = tally.take();
      try {
        await addRunCounts(store, rows.map(rounded));
      } catch (error) {
        tally.putBack(rows);
        throw error;
      }
    },
  });
}

function rounded<Row extends { waitMs: number; runMs: number }>(row: Row): Row {
  return { ...row, waitMs: Math.round(row.waitMs), runMs: Math.round(row.runMs) };
}

export function makeRollUp(store: Store): Chore {
  return defineChore("roll-up", {
    every: "10m",
    async run(context) {
      await rollUpHours(store);
      await context.inBatches("trimmed", (limit) => trimRunCounts(store, limit));
      await context.inBatches("trimmed", (limit) => trimDepths(store, limit));
    },
  });
}
