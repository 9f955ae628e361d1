// The janitor's purges as single calls, for tests that look at one of them.
import { makeDropDays } from "#src/janitor/chores/purge-history.js";
import { makeJanitor } from "#src/janitor/janitor.js";
import { makeEmitter } from "#src/shared/emitter.js";
import { forgetRemains } from "#src/store/janitor/forget.js";
import { listLeaves, purgeLeaf } from "#src/store/janitor/history-leaves.js";
import { expireKeys } from "#src/store/janitor/purge.js";
import type { Store } from "#src/store/sql.js";

/** Finished jobs that go before their day does, at most so many. */
export async function purgeEarly(store: Store, limit: number): Promise<number> {
  let purged = 0;
  for (const leaf of await listLeaves(store)) {
    if (purged < limit) purged += (await purgeLeaf(store, leaf, limit - purged, undefined)).total;
  }
  return purged;
}

export async function purgeKeys(store: Store, limit: number): Promise<number> {
  return (await expireKeys(store, limit)).expired;
}

/** Runs the chore that drops whole days. Returns how many it dropped. */
export async function dropExpiredDays(store: Store): Promise<number> {
  const janitor = makeJanitor({ store, events: makeEmitter(() => {}), chores: [makeDropDays(store, "1h")] });
  const [result] = await janitor.run();
  if (!result?.ran || result.error !== null) throw new Error(`drop-days: ${JSON.stringify(result)}`);
  return result.rows["days"] ?? 0;
}

/** All notes of jobs that are over, in pages of so many rows. Returns how many went. */
export async function forgetNotes(store: Store, limit: number): Promise<number> {
  let forgotten = 0;
  for (const what of ["notes", "saved items"] as const) {
    let from: readonly string[] | undefined;
    do {
      const { rows, next } = await forgetRemains(store, what, limit, from);
      forgotten += rows;
      from = next;
    } while (from);
  }
  return forgotten;
}
