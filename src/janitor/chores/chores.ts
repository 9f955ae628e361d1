// The janitor's own chores. Other rooms bring theirs through `janitor.add`.
import { type Chore, defineChore } from "../../job/define-chore.ts";
import type { Tally } from "../../metrics/tally.ts";
import type { Duration } from "../../shared/duration.ts";
import { trimRuns } from "../../store/janitor/chore-history.ts";
import { forgetRemains, type Remains } from "../../store/janitor/forget.ts";
import { makePartitions } from "../../store/janitor/partitions.ts";
import { countDeadDue, countExpiredKeys, expireKeys, type KeepDead, purgeDead } from "../../store/janitor/purge.ts";
import { letIn, resumedQueues } from "../../store/queues/pause.ts";
import type { Store } from "../../store/sql.ts";
import { countSilentWorkers, removeSilentWorkers } from "../../store/workers/register.ts";
import { type ExpireLeasesInput, makeExpireLeases } from "./expire-leases.ts";
import { makeDropDays, makePurgeFinished } from "./purge-history.ts";
import { makeAddRunCounts, makeMeasureQueues, makeRollUp } from "./roll-up.ts";
import { makeVacuum } from "./vacuum.ts";

export interface OwnChoresInput extends ExpireLeasesInput {
  tally: Tally;
  /** Jobs of a resumed queue can be claimed again. */
  onLetIn(): void;
  /** How often what is past its retention is purged. */
  purgeEvery: Duration;
  /** Queues whose dead jobs do not stay for ever. */
  keepDead: readonly KeepDead[];
}

const KEEP_RUNS_MS = 30 * 86_400_000;
const FIRST_ID = "00000000-0000-0000-0000-000000000000";

export function makeOwnChores(input: OwnChoresInput): Chore[] {
  const { store, purgeEvery, keepDead } = input;
  return [
    makeExpireLeases(input),
    defineChore("make-partitions", {
      every: "1h",
      run: async (context) => context.count("days", (await makePartitions(store)).length),
    }),
    makePurgeFinished(store, purgeEvery),
    makeDropDays(store, purgeEvery),
    ...(keepDead.length > 0 ? [makePurgeDead(store, purgeEvery, keepDead)] : []),
    makeExpireKeys(store),
    makeForget(store, "forget-notes", ["notes", "saved items"]),
    makeForget(store, "forget-attempts", ["attempts"]),
    defineChore("remove-dead-workers", {
      every: "1m",
      run: async (context) => void (await context.inBatches("removed", (limit) => removeSilentWorkers(store, limit))),
      preview: async () => ({ removed: await countSilentWorkers(store) }),
    }),
    makeLetIn(store, input.onLetIn),
    makeMeasureQueues(store),
    makeAddRunCounts(store, input.tally),
    makeRollUp(store),
    makeVacuum(store),
    defineChore("trim-history", {
      every: "1h",
      run: async (context) =>
        void (await context.inBatches("trimmed", (limit) => trimRuns(store, limit, KEEP_RUNS_MS))),
    }),
  ];
}

/** Finishes a resume whose process died in the middle. */
function makeLetIn(store: Store, onLetIn: () => void): Chore {
  return defineChore("let-in", {
    every: "1m",
    async run(context) {
      const queues = await resumedQueues(store);
      if (queues.length === 0) return;
      await context.inBatches("let-in", (limit) => letIn(store, queues, limit));
      onLetIn();
    },
  });
}

/** More than one statement stores at once, and with one expiry. */
const MOST_ALIKE = 20_000;

/** Keys of jobs that live are passed by; where it stopped it goes on in the next run. */
function makeExpireKeys(store: Store): Chore {
  let from: Date | undefined;
  let isStuck = false;
  return defineChore("expire-keys", {
    every: "10m",
    async run(context) {
      await context.inBatches("expired", async (limit) => {
        const { expired, reached, more } = await expireKeys(store, isStuck ? MOST_ALIKE : limit, from);
        isStuck = more && reached !== undefined && reached.getTime() === from?.getTime();
        from = more ? reached : undefined;
        return { rows: expired, more };
      });
    },
    preview: async ({ limit }) => ({ expired: await countExpiredKeys(store, limit) }),
  });
}

/** Pages through the dead; where it stopped it goes on in the next run. */
function makePurgeDead(store: Store, every: Duration, keep: readonly KeepDead[]): Chore {
  let from = FIRST_ID;
  return defineChore("purge-dead", {
    every,
    async run(context) {
      await context.inBatches("dead", async (limit) => {
        const { purged, reached, more } = await purgeDead(store, keep, limit, from);
        from = more ? reached : FIRST_ID;
        return { rows: purged, more };
      });
    },
    preview: async ({ limit }) => ({ dead: await countDeadDue(store, keep, limit) }),
  });
}

/** Pages through what belongs to jobs; where it stopped it goes on in the next run. */
function makeForget(store: Store, name: string, remains: readonly Remains[]): Chore {
  const places = new Map<Remains, readonly string[] | undefined>();
  return defineChore(name, {
    every: "1h",
    async run(context) {
      for (const what of remains) {
        await context.inBatches("forgotten", async (limit) => {
          const { rows, next } = await forgetRemains(store, what, limit, places.get(what));
          places.set(what, next);
          return { rows, more: next !== undefined };
        });
      }
    },
  });
}
