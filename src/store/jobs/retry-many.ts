// Gives many dead jobs a new life in one statement. Those of a group, or with a coalesce key, have others to look out for:
// they are named, and are retried one by one.
import { sql, type Store } from "../sql.ts";

const RETRY = sql`
with mine as materialized (
  select j.id, j.group_key is null and j.coalesce_key is null as is_plain from :schema.jobs j
  where j.id = any($1::uuid[]) and j.hold = 3 and j.state = 'dead' order by j.id for update of j skip locked
),
revived as (
  update :schema.jobs j set state = 'pending', attempt = 0, crash_count = 0, run_at = :schema.clock(), hold = 0
  from mine m where j.id = m.id and m.is_plain returning j.id, j.kind
)
select r.id, r.kind, true as "isRetried" from revived r
union all
select m.id, null, false from mine m where not m.is_plain`;

export interface RetriedMany {
  id: string;
  kind: string | null;
  /** False: it is dead, and not plain. */
  isRetried: boolean;
}

export async function retryPlain(store: Store, ids: readonly string[]): Promise<RetriedMany[]> {
  return (await store.query<RetriedMany>(RETRY, [ids])).rows;
}
