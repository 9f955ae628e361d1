// What becomes of items without a run of theirs: a person cancels one, or the janitor has set one apart that was to be cancelled,
// that crashed its process too often, or whose lease ran out while nobody could have renewed it.
import { fingerprintOf } from "../../job/fingerprint.ts";
import { CRASH_LIMIT } from "../janitor/expire-leases.ts";
import { sql, type Store } from "../sql.ts";
import type { Advanced } from "./advance.ts";
import { itemsAmong, type ItemRun, type SettledItem, settleItems } from "./settle.ts";

export interface EndedItems {
  batchId: string;
  items: SettledItem[];
  advanced: Advanced | undefined;
}

async function settleByBatch(store: Store, runs: readonly (ItemRun & { batchId: string })[]): Promise<EndedItems[]> {
  const batches = new Map<string, ItemRun[]>();
  for (const { batchId, ...run } of runs) batches.set(batchId, [...(batches.get(batchId) ?? []), run]);
  const ended: EndedItems[] = [];
  for (const [batchId, ofBatch] of batches) ended.push({ batchId, ...(await settleItems(store, batchId, ofBatch)) });
  return ended;
}

/** Those of these jobs that are items and wait. Running ones are told like any other job. */
export async function cancelWaitingItems(store: Store, ids: readonly string[]): Promise<EndedItems[]> {
  const waiting = (await itemsAmong(store, ids)).filter((item) => item.state === "pending");
  return await settleByBatch(
    store,
    waiting.map(({ id, batchId }) => ({ id, batchId, token: null, outcome: "cancelled", delayMs: 0 })),
  );
}

const SET_APART = sql`
select id from :schema.jobs where hold = 4 and batch_id is not null order by kind, run_at limit $1`;

/**
 * Buries what crashed too often, and cancels what was asked to; their slots go to the next items in the same commit. What did
 * neither goes back to its batch.
 */
export async function endItemsSetApart(store: Store, limit: number): Promise<EndedItems[]> {
  const { rows } = await store.query<{ id: string }>(SET_APART, [limit]);
  if (rows.length === 0) return [];
  const apart = await itemsAmong(
    store,
    rows.map((row) => row.id),
  );
  return await settleByBatch(
    store,
    apart
      .filter((item) => item.hold === 4)
      .map(({ id, batchId, isAsked, crashCount, lastError }) => ({
        id,
        batchId,
        token: null,
        delayMs: 0,
        outcome: isAsked
          ? ("cancelled" as const)
          : crashCount >= CRASH_LIMIT
            ? ("dead" as const)
            : ("release" as const),
        fingerprint: lastError ? fingerprintOf(lastError) : undefined,
      })),
  );
}
