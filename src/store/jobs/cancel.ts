// Cancels jobs from any process. A pending one ends now, in this commit; a running one is asked to: the request is on
// its row (so that no retry follows) and on its lease (so that the next beat brings it to the worker).
import { sql, type Store } from "../sql.ts";
import { CONSEQUENCES, lockGroups } from "./settle.ts";
import { groupsOf } from "./groups-of.ts";

export interface Cancelled {
  id: string;
  /** requested: it was running; the worker has been told. */
  how: "cancelled" | "requested";
  token: string | null;
}

const CANCEL = sql`
with mine as materialized (
  select j.* from :schema.jobs j
  where j.id = any($1::uuid[]) and j.state in ('pending', 'running') order by j.id for update of j
),
asked as (
  update :schema.jobs j set cancel_requested_at = coalesce(j.cancel_requested_at, :schema.clock())
  from mine m where j.id = m.id and m.state = 'running'
  returning j.id, j.token
),
told as (
  update :schema.leases l set cancel_ids = l.cancel_ids || array(select a.id from asked a where a.token = l.token)
  where l.token in (select token from asked)
),
decided as materialized (
  select m.*, 'cancelled' as verdict, null::jsonb as error, null::jsonb as result, $2::bigint as keep_ms, false as charged
  from mine m where m.state = 'pending'
),
${CONSEQUENCES}
select m.id, case m.state when 'running' then 'requested' else 'cancelled' end as how, m.token
from mine m`;

export async function cancelIfOpen(store: Store, ids: readonly string[], keepMs: number | null): Promise<Cancelled[]> {
  return await store.transaction(async (tx) => {
    await lockGroups(tx, await groupsOf(tx, ids));
    return (await tx.query<Cancelled>(CANCEL, [ids, keepMs])).rows;
  });
}
