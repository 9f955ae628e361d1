// Renews leases: one statement for everything a process runs. Only leases that are still there are renewed, and one
// that is locked right now is reported as unknown, not as lost. The commit does not wait for the disk.
import { routine, type Store } from "../sql.ts";

export interface LeaseId {
  token: string;
  leaseMs: number;
}

export interface BeatResult {
  token: string;
  lease_ms: number;
  state: "renewed" | "unknown" | "lost";
  cancel_ids: string[];
}

const BEAT = routine({
  name: "beat",
  takes: ["text", "text"],
  gives: "token bigint, lease_ms integer, cancel_ids uuid[], state text",
  first: `perform set_config('synchronous_commit', 'off', true);`,
  body: `with wanted as materialized (
  select w.* from jsonb_to_recordset($1::jsonb) as w (token bigint, lease_ms integer)
),
free as materialized (
  -- One search each, whatever the planner believes about the size of the table.
  select l.ctid from wanted w cross join lateral (
    select l.ctid from :schema.leases l where l.token = w.token and l.lease_ms = w.lease_ms for update of l skip locked
  ) l
),
renewed as (
  update :schema.leases l set expires_at = :schema.clock() + l.lease_ms * interval '1 millisecond'
  where l.ctid = any(array(select ctid from free))
  returning l.token, l.lease_ms, l.cancel_ids
),
finished as (
  delete from :schema.leases l where l.ctid = any(array(
    select f.ctid from jsonb_to_recordset($2::jsonb) as d (token bigint, lease_ms integer) cross join lateral (
      select l.ctid from :schema.leases l where l.token = d.token and l.lease_ms = d.lease_ms for update of l
    ) f))
)
select w.token, w.lease_ms, coalesce(r.cancel_ids, '{}') as cancel_ids,
  case
    when r.token is not null then 'renewed'
    when exists (select 1 from :schema.leases l where l.token = w.token and l.lease_ms = w.lease_ms) then 'unknown'
    else 'lost'
  end as state
from wanted w left join renewed r on r.token = w.token and r.lease_ms = w.lease_ms`,
});

const asJson = (leases: readonly LeaseId[]): string =>
  `[${leases.map((lease) => `{"token":${lease.token},"lease_ms":${lease.leaseMs}}`).join(",")}]`;

/** `finished`: leases whose jobs have all been settled since; their rows go. */
export async function beatIfHeld(
  store: Store,
  leases: readonly LeaseId[],
  finished: readonly LeaseId[],
  timeoutMs: number,
): Promise<BeatResult[]> {
  return (await store.query<BeatResult>(BEAT, [asJson(leases), asJson(finished)], { timeoutMs })).rows;
}
