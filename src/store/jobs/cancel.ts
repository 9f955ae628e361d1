// Cancels jobs from any process. A pending one ends now, in this commit; a running one is asked to: the request is on
// its row (so that no retry follows) and on its lease (so that the next beat brings it to the worker).
import { sql, type Store } from "../sql.ts";
import { CONSEQUENCES, HEIR, lockGroups } from "./settle.ts";
import { groupsOf } from "./groups-of.ts";
import { markJobs } from "./mark.ts";
import { type KeepEnded, keepEndedJson, keepEndedMs } from "./keep-ended.ts";

export interface Cancelled {
  id: string;
  /** requested: it was running; the worker has been told. */
  how: "cancelled" | "requested";
  token: string | null;
  /** The job that was admitted in its place in their group. */
  heir: string | null;
}

const CANCEL = sql`
with mine as materialized (
  select j.* from :schema.jobs j
  where j.id = any($1::uuid[]) and j.state in ('pending', 'running')
    and (j.batch_id is null or j.state = 'running') order by j.id for update of j
),
asked as (
  -- What waited to run again is cancelled with it; what is enqueued from now on is not.
  update :schema.jobs j set cancel_requested_at = coalesce(j.cancel_requested_at, :schema.clock()), rerun = null
  from mine m where j.id = m.id and m.state = 'running'
  returning j.id
),
decided as materialized (
  select m.*, 'cancelled' as verdict, null::jsonb as error, null::jsonb as result, ${keepEndedMs("$2", "m.queue")} as keep_ms, false as charged
  from mine m where m.state = 'pending'
),
${CONSEQUENCES}
select m.id, case m.state when 'running' then 'requested' else 'cancelled' end as how, m.token, ${HEIR}
from mine m left join decided d on d.id = m.id`;

// A statement of its own: the lease of a claim that was waited for is too young for the snapshot of the one above.
const TELL = sql`
update :schema.leases l set cancel_ids = l.cancel_ids || array(
  select id from unnest(l.job_ids) as u (id) where id = any($2::uuid[]) and id <> all(l.cancel_ids))
where l.token = any($1::bigint[]) and l.job_ids && $2::uuid[]`;

export async function cancelIfOpen(
  store: Store,
  ids: readonly string[],
  keep: number | null | KeepEnded,
): Promise<Cancelled[]> {
  // Before the transaction as well: inside it there is then hardly ever a lease to keep locked until its end.
  await markJobs(store, ids);
  return await store.transaction(async (tx) => {
    await markJobs(tx, ids);
    await lockGroups(tx, await groupsOf(tx, ids));
    const { rows } = await tx.query<Cancelled>(CANCEL, [ids, keepEndedJson(keep)]);
    const asked = rows.filter((row) => row.how === "requested");
    if (asked.length > 0) await tx.query(TELL, [asked.map((row) => row.token), asked.map((row) => row.id)]);
    return rows;
  });
}
