// Recovers work whose worker died. Only leases that are still overdue when locked, and only job rows nobody else has
// locked: a settle in progress wins, and an open fenced transaction is waited for by coming back later.
//
// The attempt is given back and the job becomes a suspect, which runs alone. Only a crash while alone counts; at the
// limit, or when a cancel was asked for, the row is set apart for `endSetApart`.
// Nothing expires within one lease after Postgres came up, nor while our own view of it is younger than that: the
// workers could not beat either.
import { asMillis, sql, type Statement, type Store } from "../sql.ts";
import { CONSEQUENCES, lockGroups } from "../jobs/settle.ts";
import { groupsOf } from "../jobs/groups-of.ts";

export const CRASH_LIMIT = 3;

export interface Expired {
  id: string;
  kind: string;
  hold: number;
}

const EXPIRE = sql`
with due as materialized (
  select l.token, l.lease_ms, l.alone, l.job_ids from :schema.leases l
  where l.expires_at < :schema.clock()
    and ($2::boolean or (l.lease_ms < $3::bigint
      and pg_postmaster_start_time() + l.lease_ms * interval '1 millisecond' < :schema.clock()))
  order by l.expires_at limit $1 for update of l skip locked
),
victims as materialized (
  select j.id, d.token, d.lease_ms, d.alone
  from due d cross join lateral unnest(d.job_ids) as u (id) join :schema.jobs j on j.id = u.id
  where j.token = d.token and j.state = 'running'
  order by j.id for update of j skip locked
),
back as (
  update :schema.jobs j set
    state = 'pending',
    attempt = greatest(j.attempt - 1, 0),
    crash_count = j.crash_count + case when v.alone then 1 else 0 end,
    hold = case
      when j.cancel_requested_at is not null then 4
      when v.alone and j.crash_count + 1 >= ${CRASH_LIMIT} then 4
      else 2 end,
    run_at = case when v.alone then :schema.clock() else least(j.run_at, :schema.clock()) end,
    last_error = jsonb_build_object('name', 'Crashed', 'reason', 'crashed', 'message',
      'The worker died or lost touch while the job was running'
      || case when v.alone then ' alone (crash ' || (j.crash_count + 1) || ' of ${CRASH_LIMIT})' else '' end || '.')
  from victims v where j.id = v.id
  returning j.id, j.kind, j.hold
),
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
select id, kind, hold from back`;

const NEXT_EXPIRY = sql`
select ${asMillis("min(expires_at) - :schema.clock()")} as in_ms from :schema.leases`;

const SET_APART = sql`
select id from :schema.jobs where hold = 4 order by kind, run_at limit $1`;

const END_SET_APART = sql`
with decided as materialized (
  select j.*, case when j.cancel_requested_at is not null then 'cancelled' else 'dead' end as verdict,
    j.last_error as error, null::jsonb as result, $2::bigint as keep_ms, j.cancel_requested_at is null as charged
  from :schema.jobs j where j.id = any($1::uuid[]) and j.hold = 4 and j.state = 'pending'
  order by j.id for update of j skip locked
),
${CONSEQUENCES}
select id, kind, verdict from decided`;

export interface ExpireInput {
  limit: number;
  /** The embedded tier at open: no other process can be alive, so every lease is overdue whatever the clock says. */
  everything?: boolean;
  /** For how long this process has seen the database without interruption. */
  seenForMs: number;
}

export async function expireIfOverdue(store: Store, input: ExpireInput): Promise<Expired[]> {
  const { rows } = await store.query<Expired>(EXPIRE, [
    input.limit,
    input.everything === true,
    Number.isFinite(input.seenForMs) ? Math.floor(input.seenForMs) : Number.MAX_SAFE_INTEGER,
  ]);
  return rows;
}

const OVERDUE_NOW = sql`update :schema.leases set expires_at = :schema.clock() - interval '1 millisecond'`;

/** Embedded tier, at open: whoever held these leases is gone. */
export async function expireEverything(store: Store): Promise<void> {
  await store.query(OVERDUE_NOW);
}

/** Milliseconds until the next lease is due; undefined when there is none. */
export async function nextExpiryMs(store: Store): Promise<number | undefined> {
  const { rows } = await store.query<{ in_ms: number | null }>(NEXT_EXPIRY);
  return rows[0]?.in_ms ?? undefined;
}

export interface Ended {
  id: string;
  kind: string;
  verdict: "cancelled" | "dead";
}

/** Buries what crashed too often and cancels what was asked to; groups move on in the same commit. */
export async function endSetApart(store: Store, limit: number, keepMs: number | null): Promise<Ended[]> {
  const { rows } = await store.query<{ id: string }>(SET_APART, [limit]);
  if (rows.length === 0) return [];
  const ids = rows.map((row) => row.id);
  return await store.transaction(async (tx) => {
    await lockGroups(tx, await groupsOf(tx, ids));
    return (await tx.query<Ended>(END_SET_APART, [ids, keepMs])).rows;
  });
}

export const EXPIRE_STATEMENTS: Record<string, Statement> = { EXPIRE };
