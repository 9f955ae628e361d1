// For whoever settles runs without knowing what they are: the heartbeat thread, and a worker whose kind has the name of a
// batch kind and is none. Items end as items, whoever ends them.
import { fingerprintOf } from "../../job/fingerprint.ts";
import { type EndedRun, type SettledRun, settleRuns } from "../jobs/settle.ts";
import type { Store } from "../sql.ts";
import { itemsAmong, settleItems } from "./settle.ts";

/** What a run comes to whose worker does not know the outcomes of the batch. */
const PLAIN_LABEL = "done";

export async function settleAnyRuns(store: Store, runs: readonly EndedRun[]): Promise<SettledRun[]> {
  const settled = await settleRuns(store, runs);
  if (settled.length === runs.length) return settled;
  const done = new Set(settled.map((run) => run.id));
  const open = new Map(runs.filter((run) => !done.has(run.id)).map((run) => [run.id, run]));
  const byBatch = new Map<string, EndedRun[]>();
  for (const { id, batchId } of await itemsAmong(store, [...open.keys()])) {
    byBatch.set(batchId, [...(byBatch.get(batchId) ?? []), open.get(id)!]);
  }
  for (const [batchId, items] of byBatch) {
    const result = await settleItems(
      store,
      batchId,
      items.map((run) => ({
        ...run,
        label: PLAIN_LABEL,
        fingerprint: run.error && fingerprintOf(run.error),
      })),
    );
    for (const { id, verdict, runAt } of result.items) {
      const { token } = open.get(id)!;
      settled.push({ id, token, verdict: verdict === "handed" ? "done" : verdict, runAt, heir: null });
    }
  }
  return settled;
}
