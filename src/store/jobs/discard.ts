// Puts dead jobs away: each leaves the dead list and stays readable in the history for the retention.
import { sql, type Store } from "../sql.ts";
import { type KeepEnded, keepEndedJson, keepEndedMs } from "./keep-ended.ts";
import { HISTORY_TARGET, PURGE_AT } from "./settle.ts";

const DISCARD = sql`
with gone as (
  delete from :schema.jobs j where j.id = any($1::uuid[]) and j.state = 'dead' returning j.*
)
insert into ${HISTORY_TARGET}
select id, :schema.clock(), created_at, run_at, started_at, ${PURGE_AT(keepEndedMs("$2", "queue"))}, token,
  attempt, max_attempts, claim_count, rank, 'dead', kind, queue, payload, null, key, coalesce_key, group_key,
  last_error, progress, headers
from gone
returning id`;

export async function discardIfDead(store: Store, id: string, keep: number | null | KeepEnded): Promise<boolean> {
  return (await discardDead(store, [id], keep)) === 1;
}

/** How many of them were dead, and are put away. */
export async function discardDead(
  store: Store,
  ids: readonly string[],
  keep: number | null | KeepEnded,
): Promise<number> {
  return (await store.query(DISCARD, [ids, keepEndedJson(keep)])).rowCount;
}
