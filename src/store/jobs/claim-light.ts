// Takes many jobs of one lane at the price of one row: see store/jobs/mark.ts for what makes it safe. It is for short jobs
// of a lane that is full; whoever holds the lease marks it if the jobs turn out to be long.
//
// The lane stays locked until the answer has been sent, also to a process that stopped reading. So the answer is kept
// small enough for the network's own buffers: `LIGHT_BYTES`.
// Nothing is taken if another claim or a cancel is at work in the lane, or if a job among them has a group or a coalesce
// key, because others must see of such a job that it runs: the caller then claims the ordinary way.
import type { ErrorRecord } from "../../job/outcome.ts";
import { asMicros, fromMicros, routine, type Statement, type Store } from "../sql.ts";
import { ASYNC_COMMIT, type ClaimedJob, type LanePosition } from "./claim.ts";
import { LANE_LOCK } from "./mark.ts";

export const LIGHT_BYTES = 65_536;
const ROW_BYTES = 100;
/** Beyond this the sizes may be too uneven to be cut by count. */
const TOO_MUCH = 16;

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
    j.group_key is null and j.coalesce_key is null as plain,
    ${ROW_BYTES} + pg_column_size(j.payload) + coalesce(pg_column_size(j.last_error), 0) as bytes
  from :schema.jobs j
  where j.hold = 0 and j.kind = $4 and j.rank = $5 and j.run_at <= :schema.clock() and (j.run_at, j.id) > ${FROM}
    and j.state = 'pending' and j.id not in (
      select unnest(l.job_ids) from :schema.leases l
      where l.light and l.kind = $4 and l.rank = $5 and (l.last_run_at, l.last_id) > ${FROM})
  order by j.run_at, j.id limit $8
),
fit as materialized (
  select count(*) as count, bool_and(plain) and sum(bytes) <= ${TOO_MUCH * LIGHT_BYTES} as suits,
    least(count(*), greatest(1, count(*) * ${LIGHT_BYTES} / sum(bytes))) as most
  from picked
),
taken as materialized (
  select p.* from picked p where (select suits from fit) limit (select most from fit)
),
leased as (
  insert into :schema.leases (token, lease_ms, expires_at, worker_id, job_ids, light, kind, rank, claimed_at,
    last_run_at, last_id)
  select $1, $3, :schema.clock() + $3 * interval '1 millisecond', $2, array_agg(id), true, $4, $5, :schema.clock(),
    max(run_at), (array_agg(id))[count(*)]
  from taken having count(*) > 0
)
select id, payload, attempt + 1, nullif(max_attempts, $9), nullif(queue, $10), key, last_error, ${asMicros("run_at")}
from taken
union all
-- The last row is the clock, and how many there were.
select null, null, (select count from fit)::integer, null, null, null, null, ${asMicros(":schema.clock()")}`,
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

/** `isFull`: there may be more right after the last one. */
export async function claimLight(
  store: Store,
  holder: { token: string; workerId: string },
  lane: LanePosition,
  kind: KindDefaults,
  limit: number,
): Promise<{ jobs: ClaimedJob[]; isFull: boolean }> {
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
  const last = rows.pop();
  const now = Number(last?.run_us);
  const jobs = rows.map((row) => ({
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
  return { jobs, isFull: jobs.length > 0 && (last!.attempt >= limit || last!.attempt > jobs.length) };
}

export const CLAIM_LIGHT_STATEMENTS: Record<string, Statement> = { CLAIM_LIGHT };
