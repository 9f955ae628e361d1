// Takes many jobs of one lane at the price of one row: see store/jobs/mark.ts for what makes it safe. It is for short jobs
// of a lane that is full; whoever holds the lease marks it if the jobs turn out to be long.
//
// The lane stays locked until the answer has been sent, also to a process that stopped reading. So the answer is kept
// small enough for the network's own buffers: `LIGHT_BYTES`.
// Nothing is taken if another claim or a cancel is at work in the lane, or if a job among them has a group or a coalesce
// key, because others must see of such a job that it runs: the caller then claims the ordinary way.
import type { ErrorRecord } from "../../job/outcome.ts";
import { asMicros, fromMicros, routine, type Store } from "../sql.ts";
import { ASYNC_COMMIT, type ClaimedJob, type LanePosition } from "./claim.ts";
import { LANE_LOCK } from "./mark.ts";

export const LIGHT_BYTES = 65_536;
/** Sizes vary. */
const ROOM = 0.9;
/** Anything else is compressed or lies in another table, and would be unpacked only to be found too large. */
const IS_SMALL = "pg_column_size(j.payload) < 2000 and pg_column_compression(j.payload) is null";

const FROM = `(${fromMicros("$6")}, $7)`;

/** What can be taken, up to `most` jobs: one row, made in one pass over the jobs. */
const gathered = (
  most: string,
): string => `select count(*)::integer as found, bool_and(p.is_plain and p.job is not null) as suits,
    string_agg(p.job, ',') as jobs, array_agg(p.id) as ids, max(p.run_at) as last_run_at
  from (
    select j.id, j.run_at, j.group_key is null and j.coalesce_key is null as is_plain, case when ${IS_SMALL} then
      '["' || j.id::text || '","' || ${asMicros("j.run_at")}::text || '",' || j.payload::text || case
        when j.attempt > 0 or j.max_attempts <> $9 or j.queue <> $10 or j.key is not null then
          concat(',', j.attempt, ',', j.max_attempts, ',', to_json(j.queue), ',', coalesce(to_json(j.key)::text, 'null'), ',',
            coalesce(j.last_error, 'null'), ']')
        else ']' end end as job
    from :schema.jobs j
    where j.hold = 0 and j.kind = $4 and j.rank = $5 and j.run_at <= :schema.clock() and (j.run_at, j.id) > ${FROM}
      and j.state = 'pending' and j.id not in (
        select unnest(l.job_ids) from :schema.leases l
        where l.light and l.kind = $4 and l.rank = $5 and (l.last_run_at, l.last_id) > ${FROM})
    order by j.run_at, j.id limit ${most}
  ) as p`;

const CLAIM_LIGHT = routine({
  name: "claim_light",
  takes: ["bigint", "uuid", "integer", "text", "smallint", "bigint", "uuid", "integer", "integer", "text"],
  gives: "jobs text, found integer, now_us bigint",
  first: `${ASYNC_COMMIT}
if not pg_try_advisory_xact_lock(${LANE_LOCK("$4", "$5")}) then return; end if;`,
  // The jobs are one text: taking the rows of an answer apart costs Node more than the rest of a job. If it is too long,
  // it is made once more of fewer jobs; whoever asks then asks for about as many as fit, so that this is rare.
  body: `with every as materialized (
  ${gathered("$8")}
),
taken as materialized (
  select jobs, ids, last_run_at from every where suits and octet_length(jobs) <= ${LIGHT_BYTES}
  union all
  select fewer.jobs, fewer.ids, fewer.last_run_at
  from every cross join lateral (
    ${gathered(`greatest(1, every.found * ${LIGHT_BYTES}::bigint / octet_length(every.jobs))`)}
  ) as fewer
  where every.suits and octet_length(every.jobs) > ${LIGHT_BYTES}
),
leased as (
  insert into :schema.leases (token, lease_ms, expires_at, worker_id, job_ids, light, kind, rank, claimed_at,
    last_run_at, last_id)
  select $1, $3, :schema.clock() + $3 * interval '1 millisecond', $2, ids, true, $4, $5, :schema.clock(),
    last_run_at, ids[cardinality(ids)]
  from taken
)
select taken.jobs, every.found, ${asMicros(":schema.clock()")} from every left join taken on true`,
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

/** `isFull`: there may be more right after the last one. `fits`: how many jobs of this size one answer surely holds. */
export async function claimLight(
  store: Store,
  holder: { token: string; workerId: string },
  lane: LanePosition,
  kind: KindDefaults,
  limit: number,
): Promise<{ jobs: ClaimedJob[]; isFull: boolean; fits: number }> {
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
  if (!answer?.jobs) return { jobs: [], isFull: false, fits: 0 };
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
  const fits = Math.floor((ROOM * LIGHT_BYTES * jobs.length) / answer.jobs.length);
  return { jobs, isFull: answer.found >= limit || answer.found > jobs.length, fits };
}
