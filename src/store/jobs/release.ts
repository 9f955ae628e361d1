// Takes running jobs away from their workers, because a person asked: each is pending again, with its attempt given back, and
// whatever its old run still says is refused. Nobody is suspected of anything. Items of batches go back to their batch:
// store/batches/release-items.ts.
import { sql, type Store } from "../sql.ts";
import { markJobs } from "./mark.ts";
import { FORGET } from "./settle.ts";

// A job that was to be cancelled is set apart, for the janitor to end. A row that somebody has locked (a settle, an open
// fenced transaction) is left alone.
const RELEASE = sql`
with mine as materialized (
  select j.id, j.token, j.rerun from :schema.jobs j
  where j.id = any($1::uuid[]) and j.state = 'running' and j.batch_id is null
  order by j.id for update of j skip locked
),
${FORGET("mine")}
update :schema.jobs j set
  state = 'pending',
  token = null,
  attempt = case when j.rerun is null then greatest(j.attempt - 1, 0) else 0 end,
  payload = coalesce(j.rerun, j.payload),
  rerun = null,
  cancel_requested_at = case when j.rerun is null then j.cancel_requested_at end,
  hold = case when j.cancel_requested_at is not null and j.rerun is null then 4 else j.hold end,
  run_at = least(j.run_at, :schema.clock())
from mine m where j.id = m.id
returning j.id, j.kind, j.rank, m.token`;

export interface Released {
  id: string;
  kind: string;
  rank: number;
  /** Of the run that is over. */
  token: string;
}

export async function releaseIfRunning(store: Store, ids: readonly string[]): Promise<Released[]> {
  await markJobs(store, ids);
  return (await store.query<Released>(RELEASE, [ids])).rows;
}
