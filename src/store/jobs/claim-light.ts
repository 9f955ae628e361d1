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
  gives: "jobs text, found integer, now_us bigint",
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
-- One text for all: taking a row of an answer apart costs Node more than the rest of the job.
select (select string_agg(concat('["', id, '","', ${asMicros("run_at")}, '",', payload,
    case when attempt > 0 or max_attempts <> $9 or queue <> $10 or key is not null then concat(',', attempt, ',',
      max_attempts, ',', to_json(queue), ',', coalesce(to_json(key)::text, 'null'), ',', coalesce(last_error, 'null'))
    end, ']'), ',') from taken),
  count::integer, ${asMicros(":schema.clock()")}
from fit`,
});

interface Answer {
  /** Members of a JSON list. */
  jobs: string | null;
  /** How many wait, up to the limit. */
  found: number;
  now_us: string;
}

type LightJob = [
  id: string,
  runUs: string,
  payload: unknown,
  // What is not as the kind has it.
  attempt?: number,
  maxAttempts?: number,
  queue?: string,
  key?: string | null,
  lastError?: ErrorRecord | null,
];

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
  const { rows } = await store.query<Answer>(CLAIM_LIGHT, [
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
  const answer = rows[0];
  if (!answer?.jobs) return { jobs: [], isFull: false };
  const nowUs = Number(answer.now_us);
  const taken = JSON.parse(`[${answer.jobs}]`) as LightJob[];
  const jobs = taken.map(([id, runUs, payload, attempt = 0, maxAttempts, queue, key, lastError]) => ({
    id,
    kind: lane.kind,
    queue: queue ?? kind.queue,
    payload,
    attempt: attempt + 1,
    max_attempts: maxAttempts ?? kind.attempts,
    rank: lane.rank,
    key: key ?? null,
    group_key: null,
    last_error: lastError ?? null,
    run_us: runUs,
    lag_ms: (nowUs - Number(runUs)) / 1_000,
  }));
  return { jobs, isFull: answer.found >= limit || answer.found > jobs.length };
}

export const CLAIM_LIGHT_STATEMENTS: Record<string, Statement> = { CLAIM_LIGHT };
