// Takes many jobs of one lane at the price of one row: see store/jobs/mark.ts for what makes it safe. It is for short jobs
// of a lane that is full; whoever holds the lease marks it if the jobs turn out to be long.
//
// Nothing is taken if another claim or a cancel is at work in the lane, or if a job among them has a group or a coalesce
// key, because others must see of such a job that it runs: the caller then claims the ordinary way.
import type { ErrorRecord } from "../../job/outcome.ts";
import { asMicros, fromMicros, routine, type Statement, type Store } from "../sql.ts";
import { ASYNC_COMMIT, type ClaimedJob, type LanePosition } from "./claim.ts";
import { LANE_LOCK } from "./mark.ts";

const FROM = `(${fromMicros("$6")}, $7)`;

const CLAIM_LIGHT = routine({
  name: "claim_light",
  takes: ["bigint", "uuid", "integer", "text", "smallint", "bigint", "uuid", "integer", "integer", "text"],
  gives: `id uuid, payload jsonb, attempt integer, max_attempts integer, queue text, key text, last_error jsonb,
    run_us bigint`,
  first: `${ASYNC_COMMIT}
if not pg_try_advisory_xact_lock(${LANE_LOCK("$4", "$5")}) then return; end if;`,
  body: `with picked as materialized (
  select j.id, j.payload, j.attempt, j.max_attempts, j.queue, j.key, j.last_error, j.run_at,
    j.group_key is null and j.coalesce_key is null as plain
  from :schema.jobs j
  where j.hold = 0 and j.kind = $4 and j.rank = $5 and j.run_at <= :schema.clock() and (j.run_at, j.id) > ${FROM}
    and j.state = 'pending' and j.id not in (
      select unnest(l.job_ids) from :schema.leases l
      where l.light and l.kind = $4 and l.rank = $5 and (l.last_run_at, l.last_id) > ${FROM})
  order by j.run_at, j.id limit $8
),
leased as (
  insert into :schema.leases (token, lease_ms, expires_at, worker_id, job_ids, light, kind, rank, claimed_at,
    last_run_at, last_id)
  select $1, $3, :schema.clock() + $3 * interval '1 millisecond', $2, array_agg(id), true, $4, $5, :schema.clock(),
    max(run_at), (array_agg(id))[count(*)]
  from picked having bool_and(plain)
)
select id, payload, attempt + 1, nullif(max_attempts, $9), nullif(queue, $10), key, last_error, ${asMicros("run_at")}
from picked where (select bool_and(plain) from picked)
union all
-- The last row is the clock.
select null, null, null, null, null, null, null, ${asMicros(":schema.clock()")}`,
});

interface LightRow {
  id: string | null;
  payload: unknown;
  attempt: number;
  max_attempts: number | null;
  queue: string | null;
  key: string | null;
  last_error: ErrorRecord | null;
  run_us: string;
}

/** What most jobs of the kind have; it is not sent with each of them. */
export interface KindDefaults {
  leaseMs: number;
  attempts: number;
  queue: string;
}

export async function claimLight(
  store: Store,
  holder: { token: string; workerId: string },
  lane: LanePosition,
  kind: KindDefaults,
  limit: number,
): Promise<ClaimedJob[]> {
  const { rows } = await store.query<LightRow>(CLAIM_LIGHT, [
    holder.token,
    holder.workerId,
    kind.leaseMs,
    lane.kind,
    lane.rank,
    lane.fromUs,
    lane.fromId,
    limit,
    kind.attempts,
    kind.queue,
  ]);
  const now = Number(rows.pop()?.run_us);
  return rows.map((row) => ({
    id: row.id!,
    kind: lane.kind,
    queue: row.queue ?? kind.queue,
    payload: row.payload,
    attempt: row.attempt,
    max_attempts: row.max_attempts ?? kind.attempts,
    rank: lane.rank,
    key: row.key,
    group_key: null,
    last_error: row.last_error,
    run_us: row.run_us,
    lag_ms: (now - Number(row.run_us)) / 1_000,
  }));
}

export const CLAIM_LIGHT_STATEMENTS: Record<string, Statement> = { CLAIM_LIGHT };
