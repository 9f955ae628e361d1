// The janitor's own chores. Other rooms bring theirs through `janitor.add`.
import { type Chore, defineChore } from "../../job/define-chore.ts";
import { trimRuns } from "../../store/janitor/chore-history.ts";
import { makePartitions } from "../../store/janitor/partitions.ts";
import { dropExpiredPartitions, purgeEarly, purgeKeys } from "../../store/janitor/purge.ts";
import { forgetNotes } from "../../store/notes/notes.ts";
import { removeSilentWorkers } from "../../store/workers/register.ts";
import { type ExpireLeasesInput, makeExpireLeases } from "./expire-leases.ts";

const KEEP_RUNS_MS = 30 * 86_400_000;

export function makeOwnChores(input: ExpireLeasesInput): Chore[] {
  const { store } = input;
  return [
    makeExpireLeases(input),
    defineChore("make-partitions", {
      every: "1h",
      run: async (context) => context.count("made", (await makePartitions(store)).length),
    }),
    defineChore("drop-partitions", {
      every: "1h",
      run: async (context) => context.count("dropped", (await dropExpiredPartitions(store)).length),
    }),
    defineChore("purge-finished", {
      every: "1m",
      run: async (context) => void (await context.inBatches("purged", (limit) => purgeEarly(store, limit))),
    }),
    defineChore("expire-keys", {
      every: "10m",
      run: async (context) => void (await context.inBatches("expired", (limit) => purgeKeys(store, limit))),
    }),
    defineChore("forget-notes", {
      every: "1m",
      run: async (context) => void (await context.inBatches("forgotten", (limit) => forgetNotes(store, limit))),
    }),
    defineChore("remove-dead-workers", {
      every: "1m",
      run: async (context) => context.count("removed", await removeSilentWorkers(store)),
    }),
    defineChore("trim-history", {
      every: "1h",
      run: async (context) =>
        void (await context.inBatches("trimmed", (limit) => trimRuns(store, limit, KEEP_RUNS_MS))),
    }),
  ];
}
