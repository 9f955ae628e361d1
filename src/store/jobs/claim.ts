// Takes jobs: pending → running, under one token, with one lease row per lease duration. No index entry is written,
// and the commit does not wait for the disk: a claim that Postgres forgets in a crash is simply claimable again.
//
// Four ways to choose, one way to take. A lane is (kind, rank); its watermark says where the last claim began, so that
// the dead entries before it are not walked again. What lies behind a watermark is found by store/jobs/look.ts and
// taken by id.
import type { ErrorRecord } from "../../job/outcome.ts";
import { asMicros, asMillis, bounded, fromMicros, routine, sql, type Store } from "../sql.ts";
import { IS_KIND } from "./lane.ts";
import { KEEP_OUT_LIGHT, LANE_LOCK, LIGHT_IDS, markTokens } from "./mark.ts";

export interface ClaimedJob {
  id: string;
  kind: string;
  queue: string;
  payload: unknown;
  attempt: number;
  max_attempts: number;
  rank: number;
  key: string | null;
  group_key: string | null;
  last_error: ErrorRecord | null;
  run_us: string;
  /** How long it had been due. */
  lag_ms: number;
  /** Of an item. What a light claim or a hand-over takes is none. */
  batch_id?: string | null;
}

export interface Holder {
  token: string;
  workerId: string;
  /** kind → lease, as JSON text: [{"kind","lease_ms"}]. */
  leases: string;
}

export interface LanePosition {
  kind: string;
  rank: number;
  fromUs: string;
  fromId: string;
}

// Without fsync a commit waits for nothing anyway, and the embedded database, which dies with its process, must not
// forget who was running when it died: a job that kills its process would never be found out.
export const ASYNC_COMMIT = `
if current_setting('fsync') = 'on' then perform set_config('synchronous_commit', 'off', true); end if;`;
const CLAIMED = `id uuid, kind text, queue text, payload jsonb, attempt integer, max_attempts integer, rank smallint, key text,
  group_key text, last_error jsonb, run_us bigint, lag_ms double precision, batch_id uuid`;
const HOLDER = ["bigint", "uuid", "text"];

const take = (alone: string): string => `
claimed as (
  update :schema.jobs j set state = 'running', token = $1::bigint, attempt = j.attempt + 1,
    claim_count = j.claim_count + 1, started_at = :schema.clock()
  where j.ctid = any(array(select ctid from picked)) and j.state = 'pending' and j.hold in (0, 2)
  returning j.id, j.kind, j.queue, j.payload, j.attempt, j.max_attempts, j.rank, j.key, j.group_key, j.last_error, j.run_at,
    j.batch_id
),
leased as (
  insert into :schema.leases (token, lease_ms, expires_at, worker_id, alone, job_ids)
  select $1::bigint, l.lease_ms, :schema.clock() + l.lease_ms * interval '1 millisecond', $2::uuid, ${alone},
    array_agg(c.id)
  from claimed c join jsonb_to_recordset($3::jsonb) as l (kind text, lease_ms integer) on l.kind = c.kind
  group by l.lease_ms
)
select id, kind, queue, payload, attempt, max_attempts, rank, key, group_key, last_error,
  ${asMicros("run_at")} as run_us,
  ${asMillis(`:schema.clock() - ${bounded("run_at")}`)} as lag_ms, batch_id
from claimed`;

const claimLaneBody = (lock: string): string => `
with picked as materialized (
  select j.ctid from :schema.jobs j
  where j.hold = 0 and ${IS_KIND("$4")} and j.rank = $5 and j.run_at <= :schema.clock()
    and (j.run_at, j.id) >= (${fromMicros("$6")}, $7) and j.state = 'pending' and j.id not in ${LIGHT_IDS}
  order by j.run_at, j.id limit $8 ${lock}
),
${take("false")}`;

// Locking a row before updating it is what lets claimers pass each other, and a sixth of a claim's cost. While nobody
// else claims in this lane there is nobody to pass. A row that somebody else has locked (a cancel, an open transaction)
// is waited for only briefly; after that the caller asks for the careful way.
const CLAIM_LANE = routine({
  name: "claim_lane",
  takes: [...HOLDER, "text", "smallint", "bigint", "uuid", "integer", "boolean"],
  gives: CLAIMED,
  first: ASYNC_COMMIT + KEEP_OUT_LIGHT(`select ${LANE_LOCK("$4", "$5")}`),
  body: claimLaneBody("for update of j skip locked"),
  instead: {
    when: `$9 and pg_try_advisory_xact_lock(hashtextextended($4, $5))`,
    first: `perform set_config('lock_timeout', '20ms', true);`,
    body: claimLaneBody(""),
  },
});

// Several lanes: the best of all of them are chosen first, without locks, then taken; what another worker took in
// between is left out, and the next claim finds what comes after it.
const CLAIM_LANES = routine({
  name: "claim_lanes",
  takes: [...HOLDER, "text", "integer", "integer"],
  gives: CLAIMED,
  first:
    ASYNC_COMMIT +
    KEEP_OUT_LIGHT(
      `select ${LANE_LOCK("l.kind", "l.rank")} from jsonb_to_recordset($4::jsonb) as l (kind text, rank smallint)`,
    ),
  body: `with best as materialized (
  select c.ctid from jsonb_to_recordset($4::jsonb) as l (kind text, rank smallint, from_us bigint, from_id uuid)
    cross join lateral (
      select j.ctid, j.rank, j.run_at, j.id from :schema.jobs j
      where j.hold = 0 and ${IS_KIND("l.kind")} and j.rank = l.rank and j.run_at <= :schema.clock()
        and (j.run_at, j.id) >= (${fromMicros("l.from_us")}, l.from_id) and j.state = 'pending'
        and j.id not in ${LIGHT_IDS}
      order by j.run_at, j.id limit $5
    ) c
  order by c.rank, c.run_at, c.id limit $6
),
picked as materialized (
  select j.ctid from :schema.jobs j
  where j.ctid = any(array(select ctid from best)) and j.state = 'pending' and j.hold = 0
  for update of j skip locked
),
${take("false")}`,
});

const CLAIM_IDS = routine({
  name: "claim_ids",
  takes: [...HOLDER, "uuid[]", "text[]", "integer"],
  gives: CLAIMED,
  first:
    ASYNC_COMMIT +
    KEEP_OUT_LIGHT(`select distinct ${LANE_LOCK("j.kind", "j.rank")} from :schema.jobs j where j.id = any($4)`),
  body: `with picked as materialized (
  select j.ctid from :schema.jobs j
  where j.id = any($4::uuid[]) and j.kind = any($5::text[]) and j.hold = 0 and j.state = 'pending'
    and j.id not in ${LIGHT_IDS}
    and j.run_at <= :schema.clock()
  order by j.rank, j.run_at, j.id limit $6 for update of j skip locked
),
${take("false")}`,
});

const CLAIM_SUSPECT = routine({
  name: "claim_suspect",
  takes: [...HOLDER, "text[]", "boolean"],
  gives: CLAIMED,
  first: ASYNC_COMMIT,
  body: `with picked as materialized (
  select j.ctid from :schema.jobs j
  where j.hold = 2 and j.kind = any($4::text[]) and j.state = 'pending' and j.run_at <= :schema.clock()
    -- Since its last run, that is: it may have been in the queue for hours before it was ever suspected.
    and ($5::boolean or greatest(j.run_at, j.started_at) < :schema.clock() - interval '5 minutes')
  -- Whoever has not crashed alone comes first: with processes that are killed from outside, the first in line would be
  -- hit again and again, and be taken for the cause.
  order by j.crash_count, j.run_at limit 1 for update of j skip locked
),
${take("$5::boolean")}`,
});

const CLAIMED_BY_TOKEN = sql`
select id, kind, queue, payload, attempt, max_attempts, rank, key, group_key, last_error,
  ${asMicros("run_at")} as run_us, 0::double precision as lag_ms, batch_id
from :schema.jobs j
where j.id in (select unnest(l.job_ids) from :schema.leases l where l.token = $1::bigint)
  and j.token = $1::bigint and j.state = 'running'`;

const held = (holder: Holder): unknown[] => [holder.token, holder.workerId, holder.leases];

/** `hurry`: without row locks, if nobody else claims in this lane; may fail with a lock timeout. */
export async function claimLane(
  store: Store,
  holder: Holder,
  lane: LanePosition,
  limit: number,
  hurry = false,
): Promise<ClaimedJob[]> {
  const values = [...held(holder), lane.kind, lane.rank, lane.fromUs, lane.fromId, limit, hurry];
  return (await store.query<ClaimedJob>(CLAIM_LANE, values)).rows;
}

/** `perLane` bounds how many of each lane compete; it is at least what a fair share would be. */
export async function claimLanes(
  store: Store,
  holder: Holder,
  lanes: readonly LanePosition[],
  perLane: number,
  limit: number,
): Promise<ClaimedJob[]> {
  const rows = lanes.map((lane) => ({
    kind: lane.kind,
    rank: lane.rank,
    from_us: lane.fromUs,
    from_id: lane.fromId,
  }));
  return (await store.query<ClaimedJob>(CLAIM_LANES, [...held(holder), JSON.stringify(rows), perLane, limit])).rows;
}

export async function claimIds(
  store: Store,
  holder: Holder,
  ids: readonly string[],
  kinds: readonly string[],
  limit: number,
): Promise<ClaimedJob[]> {
  return (await store.query<ClaimedJob>(CLAIM_IDS, [...held(holder), ids, kinds, limit])).rows;
}

/** One suspect. `alone`: the process runs nothing else, so that a crash would be this job's own. */
export async function claimSuspect(
  store: Store,
  holder: Holder,
  kinds: readonly string[],
  alone: boolean,
): Promise<ClaimedJob[]> {
  return (await store.query<ClaimedJob>(CLAIM_SUSPECT, [...held(holder), kinds, alone])).rows;
}

/** What a claim took whose reply was lost. */
export async function claimedByToken(store: Store, token: string): Promise<ClaimedJob[]> {
  await markTokens(store, [token]);
  return (await store.query<ClaimedJob>(CLAIMED_BY_TOKEN, [token])).rows;
}
