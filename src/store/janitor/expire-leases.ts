// Recovers work whose worker died. Only leases that are still overdue when locked, and only job rows nobody else has
// locked: a settle in progress wins, and an open fenced transaction is waited for by coming back later.
//
// The attempt is given back and the job becomes a suspect, which runs alone. Only a crash while alone counts; at the
// limit, or when a cancel was asked for, the row is set apart for `endSetApart`. So is an item that nobody suspects: whether it
// waits for its worker or for its batch is the batch's affair, and decided under its lock (store/batches/end-items.ts).
// Nothing expires within one lease after Postgres came up, nor while our own view of it is younger than that: the
// workers could not beat either.
import { isPassing } from "../../db/retryable.ts";
import type { ErrorRecord } from "../../job/outcome.ts";
import { asMillis, routine, sql, type Store } from "../sql.ts";
import { CONSEQUENCES, FORGET, HEIR } from "../jobs/settle.ts";
import { groupsOf } from "../jobs/groups-of.ts";
import { MARK } from "../jobs/mark.ts";
import { type KeepEnded, keepEndedJson, keepEndedMs } from "../jobs/keep-ended.ts";
import { databaseNow } from "../stats/database-clock.ts";

export const CRASH_LIMIT = 3;

export interface Expired {
  id: string;
  kind: string;
  hold: number;
}

const EXPIRE = routine({
  name: "expire_leases",
  takes: ["integer", "boolean", "bigint", "uuid[]", "timestamptz"],
  gives: "id uuid, kind text, hold smallint",
  first: `if exists (select 1 from :schema.leases l where l.light and l.expires_at < :schema.clock()) then
  ${MARK("l.expires_at < :schema.clock()", "limit 20 for update of l skip locked")};
end if;`,
  body: `with due as materialized (
  select l.token, l.lease_ms, l.job_ids,
    -- It ran out before Postgres came up: nobody could have renewed it, so nobody is suspected.
    not $2::boolean and l.expires_at < pg_postmaster_start_time() as unheard,
    l.alone and ($2::boolean or l.expires_at >= pg_postmaster_start_time()) as counts
  from :schema.leases l
  where l.expires_at < :schema.clock() and not l.light and l.worker_id <> all ($4)
    and ($2::boolean or (l.lease_ms < $3::bigint
      and :schema.clock() < $5 + greatest(l.lease_ms / 3, 1000) * interval '1 millisecond'
      and pg_postmaster_start_time() + l.lease_ms * interval '1 millisecond' < :schema.clock()))
  order by l.expires_at limit $1 for update of l skip locked
),
victims as materialized (
  select j.id, j.rerun, d.unheard, d.counts,
    j.cancel_requested_at is not null or (d.counts and j.crash_count + 1 >= ${CRASH_LIMIT}) as ends,
    d.unheard and j.batch_id is not null and j.hold <> 2 as returns
  from due d cross join lateral unnest(d.job_ids) as u (id) join :schema.jobs j on j.id = u.id
  where j.token = d.token and j.state = 'running'
  order by j.id for update of j skip locked
),
back as (
  update :schema.jobs j set
    state = 'pending',
    -- The run is over: what it still says is refused, also before the next claim.
    token = null,
    attempt = case when j.rerun is not null then 0
      -- The batch gives it back.
      when v.returns and not v.ends then j.attempt else greatest(j.attempt - 1, 0) end,
    -- What was enqueued during the run outlives it, whatever becomes of the run.
    payload = coalesce(j.rerun, j.payload),
    rerun = null,
    cancel_requested_at = case when j.rerun is null then j.cancel_requested_at end,
    crash_count = case
      when v.ends and j.rerun is not null then 0
      else j.crash_count + case when v.counts then 1 else 0 end end,
    hold = case
      when v.ends and j.rerun is not null then 0
      when v.ends or v.returns then 4
      when v.unheard then j.hold
      else 2 end,
    run_at = case when v.counts then :schema.clock() else least(j.run_at, :schema.clock()) end,
    last_error = case when v.unheard then j.last_error else jsonb_build_object(
      'name', 'Crashed', 'reason', 'crashed', 'message', 'The worker died or lost touch while the job was running'
      || case when v.counts then ' alone (crash ' || (j.crash_count + 1) || ' of ${CRASH_LIMIT})' else '' end || '.') end
  from victims v where j.id = v.id
  returning j.id, j.kind, j.hold
),
${FORGET("victims")},
-- A lease with a job row that somebody has locked stays, overdue, for the next round.
left_over as (
  select d.token, d.lease_ms from due d cross join lateral unnest(d.job_ids) as u (id)
  join :schema.jobs j on j.id = u.id
  where j.token = d.token and j.state = 'running' and j.id not in (select id from victims)
),
cleared as (
  delete from :schema.leases l using due d
  where l.token = d.token and l.lease_ms = d.lease_ms
    and not exists (select 1 from left_over x where x.token = l.token and x.lease_ms = l.lease_ms)
)
select id, kind, hold from back`,
});

const NEXT_EXPIRY = sql`
select ${asMillis("min(expires_at) - :schema.clock()")} as in_ms, min(lease_ms) as shortest_ms from :schema.leases`;

const SET_APART = sql`
select id from :schema.jobs where hold = 4 and batch_id is null and id <> all($2::uuid[]) order by kind, run_at limit $1`;

const END_SET_APART = sql`
with decided as materialized (
  select j.*, case when j.cancel_requested_at is not null then 'cancelled' else 'dead' end as verdict,
    j.last_error as error, null::jsonb as result, ${keepEndedMs("$2", "j.queue")} as keep_ms, j.cancel_requested_at is null as charged
  from :schema.jobs j where j.id = any($1::uuid[]) and j.hold = 4 and j.state = 'pending' and j.batch_id is null
    and (j.group_key is null or j.group_key = any($3::text[]))
  order by j.id for update of j skip locked
),
${CONSEQUENCES}
select d.id, d.kind, d.queue, d.attempt, d.error, d.verdict, ${HEIR} from decided d`;

// A group in somebody's open transaction is for the next round, and keeps nobody else waiting.
const LOCK_FREE_GROUPS = sql`
select g.name from :schema.job_groups g where g.name = any($1::text[]) order by g.name for update of g skip locked`;

export interface ExpireInput {
  limit: number;
  /** The embedded tier: the database cannot be away while we are here, so silence always means what it says. */
  atOnce: boolean;
  /** For how long this process has seen the database without interruption. */
  seenForMs: number;
  /** Workers that are known to be alive. */
  spare?: readonly string[];
}

export async function expireIfOverdue(store: Store, input: ExpireInput): Promise<Expired[]> {
  // A statement that arrives late (the network was silent, the database frozen) must not be the first to judge
  // afterwards: nobody could beat either. So it says when it was meant.
  const asOf = await databaseNow(store);
  const { rows } = await store.query<Expired>(EXPIRE, [
    input.limit,
    input.atOnce,
    Number.isFinite(input.seenForMs) ? Math.floor(input.seenForMs) : Number.MAX_SAFE_INTEGER,
    input.spare ?? [],
    asOf.toISOString(),
  ]);
  return rows;
}

const OVERDUE_NOW = sql`update :schema.leases set expires_at = :schema.clock() - interval '1 millisecond'`;

/** Embedded tier, at open: whoever held these leases is gone. */
export async function expireEverything(store: Store): Promise<void> {
  await store.query(OVERDUE_NOW);
}

/** Milliseconds until the next lease is due, and how long the shortest one is; infinite when there is none. */
export async function nextExpiry(store: Store): Promise<{ inMs: number; shortestMs: number }> {
  const { rows } = await store.query<{ in_ms: number | null; shortest_ms: number | null }>(NEXT_EXPIRY);
  return { inMs: rows[0]?.in_ms ?? Infinity, shortestMs: rows[0]?.shortest_ms ?? Infinity };
}

export interface Ended {
  id: string;
  kind: string;
  queue: string;
  attempt: number;
  error: ErrorRecord | null;
  verdict: "cancelled" | "dead";
  heir: string | null;
}

/** Jobs whose end the database refuses, and why. */
export type Refused = Map<string, unknown>;

/**
 * Buries what crashed too often and cancels what was asked to; groups move on in the same commit. One whose end is refused keeps
 * no other from its own: it is added to `refused`, and whatever is in there is left alone.
 */
export async function endSetApart(
  store: Store,
  limit: number,
  keep: number | null | KeepEnded,
  refused: Refused = new Map(),
): Promise<Ended[]> {
  const { rows } = await store.query<{ id: string }>(SET_APART, [limit, [...refused.keys()]]);
  const ids = rows.map((row) => row.id);
  if (ids.length === 0) return [];
  try {
    return await end(store, ids, keep);
  } catch (error) {
    if (isPassing(error)) throw error;
  }
  const ended: Ended[] = [];
  for (const id of ids) {
    try {
      ended.push(...(await end(store, [id], keep)));
    } catch (error) {
      if (isPassing(error)) throw error;
      refused.set(id, error);
    }
  }
  return ended;
}

async function end(store: Store, ids: readonly string[], keep: number | null | KeepEnded): Promise<Ended[]> {
  return await store.transaction(async (tx) => {
    const groups = await tx.query<{ name: string }>(LOCK_FREE_GROUPS, [await groupsOf(tx, ids)]);
    return (await tx.query<Ended>(END_SET_APART, [ids, keepEndedJson(keep), groups.rows.map((group) => group.name)]))
      .rows;
  });
}
