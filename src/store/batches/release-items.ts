// Takes running items away from their workers, because a person asked. Like any release of theirs this is their batch's affair: if
// that is paused they are parked, if it or they were to be cancelled they end, and all of it is counted.
import type { Advanced } from "./advance.ts";
import { itemsAmong, settleItems } from "./settle.ts";
import type { Released } from "../jobs/release.ts";
import type { Store } from "../sql.ts";

export interface ReleasedItem extends Released {
  batchId: string;
  advanced: Advanced | undefined;
}

/** Undefined: it is no item, it does not run, or its row is locked. */
export async function releaseItemIfRunning(store: Store, id: string): Promise<ReleasedItem | undefined> {
  const [item] = await itemsAmong(store, [id]);
  if (item?.state !== "running") return undefined;
  const { batchId, kind, rank, token } = item;
  const taken = { id, token, outcome: "release" as const, isTaken: true, delayMs: 0 };
  const { items, advanced } = await settleItems(store, batchId, [taken]);
  return items.length === 0 ? undefined : { id, kind, rank, token: token!, batchId, advanced };
}
