// Purges finished jobs: those that go early, row by row from the leaf of their day; and whole days, by dropping the leaf
// when the last of its jobs may go.
//
// When that is, a day does not say by itself. So a day that is over is read through once, in steps of some pages, and
// what was found is written down. A day that holds some jobs much longer than others is walked again, a day after the first
// of the rest became due, and those past their retention are deleted on the way.
import { type Chore, type ChoreContext, defineChore } from "../../job/define-chore.ts";
import {
  dropLeaf,
  type KnownDay,
  knownDays,
  type Leaf,
  listLeaves,
  previewHistory,
  purgeLeaf,
  walkLeaf,
} from "../../store/janitor/history-leaves.ts";
import type { Store } from "../../store/sql.ts";
import type { Duration } from "../../shared/duration.ts";

export function makePurgeFinished(store: Store, every: Duration): Chore {
  return defineChore("purge-finished", {
    every,
    // A few milliseconds each: a commit of somebody else may have to wait for one.
    batchSize: 500,
    async run(context) {
      for (const leaf of await listLeaves(store)) {
        if (leaf.place !== "attached" || leaf.pages === 0) continue;
        let from: Date | undefined;
        await context.inBatches("purged", async (limit) => {
          const { rows, total, reached } = await purgeLeaf(store, leaf, limit, from);
          from = reached ?? from;
          return { rows, more: total >= limit };
        });
        if (!context.hasTime()) return;
      }
    },
    preview: ({ limit }) => previewHistory(store, limit),
  });
}

/** A page holds some dozens of jobs. */
const ROWS_PER_PAGE = 20;

export function makeDropDays(store: Store, every: Duration): Chore {
  return defineChore("drop-days", {
    every,
    batchSize: 5_000,
    async run(context) {
      const leaves = (await listLeaves(store)).filter((leaf) => leaf.isOver);
      for (const leaf of leaves) {
        if (leaf.place === "attached") await learn(store, leaf, context);
        if (!context.hasTime()) return { more: true };
      }
      const known = await knownDays(store);
      for (const leaf of leaves) {
        // One that is out of the history already has nothing to keep.
        if (leaf.place === "attached" && !known.get(leaf.day)?.canDrop) continue;
        await dropLeaf(store, leaf);
        context.count("days", 1);
      }
      return undefined;
    },
  });
}

/** Finds out when the day may go, and purges what has long been due in one that stays. */
async function learn(store: Store, leaf: Leaf, context: ChoreContext): Promise<void> {
  const before = (await knownDays(store)).get(leaf.day);
  if (isSettled(before)) return;
  const purge = before?.known === true;
  let page = before?.walked ?? 0;
  await context.inBatches("purged", async (limit) => {
    const pages = Math.max(1, Math.ceil(limit / ROWS_PER_PAGE));
    const rows = await walkLeaf(store, { leaf, fromPage: page, pages, purge });
    page += pages;
    return { rows, more: page < leaf.pages };
  });
}

/** Nothing is to be found out, and nothing to be purged. */
function isSettled(day: KnownDay | undefined): boolean {
  return day !== undefined && day.known && day.walked === 0 && (day.canDrop || !day.canPurge);
}
