// Removes keys whose life is over, dead jobs whose queue says so, and what belongs to jobs that are gone. Each call is one
// bounded statement; the caller repeats while it is worth it. A purge of jobs never touches the ledger of keys.
import { routine, sql, type Store } from "../sql.ts";

const EXPIRE_KEYS = routine({
  name: "expire_keys",
  takes: ["integer", "timestamptz"],
  gives: "expired bigint, seen bigint, reached timestamptz",
  body: `with due as materialized (
  select k.ctid, k.expires_at from :schema.job_keys k
  where k.expires_at < :schema.clock() and k.expires_at >= $2
  order by k.expires_at limit $1 for update of k skip locked
),
gone as (
  -- The key of a job that is live or dead does not expire.
  delete from :schema.job_keys k where k.ctid = any(array(select ctid from due))
    and not exists (select 1 from :schema.jobs j where j.id = k.job_id)
  returning 1
)
select (select count(*) from gone), (select count(*) from due), (select max(expires_at) from due)`,
});

export interface ExpiredKeys {
  expired: number;
  /** Where the next statement may begin, so that it does not walk past what is gone or stays. */
  reached: Date | undefined;
  more: boolean;
}

/** Keys past their life whose job is neither live nor dead. */
export async function expireKeys(store: Store, limit: number, from?: Date): Promise<ExpiredKeys> {
  const { rows } = await store.query<{ expired: string; seen: string; reached: Date | null }>(EXPIRE_KEYS, [
    limit,
    from?.toISOString() ?? "-infinity",
  ]);
  const { expired, seen, reached } = rows[0]!;
  return { expired: Number(expired), reached: reached ?? undefined, more: Number(seen) >= limit };
}

const COUNT_KEYS = sql`
select count(*)::integer as count from (
  select 1 from :schema.job_keys k
  where k.expires_at < :schema.clock() and not exists (select 1 from :schema.jobs j where j.id = k.job_id) limit $1
) found`;

export async function countExpiredKeys(store: Store, limit: number): Promise<number> {
  return (await store.query<{ count: number }>(COUNT_KEYS, [limit])).rows[0]!.count;
}

// Dead jobs go only where their queue has a retention for them; counted from their last failed attempt.
const DEAD_DUE = `
  select j.id from (
    select j.id, j.queue, j.created_at from :schema.jobs j where j.hold = 3 and j.id > $2 order by j.id limit $1
  ) j
  join jsonb_to_recordset($3::text::jsonb) as q (queue text, keep_ms bigint) on q.queue = j.queue
  where coalesce((select a.failed_at from :schema.attempts a where a.job_id = j.id order by a.claim_count desc limit 1),
      j.created_at)
    < :schema.clock() - q.keep_ms * interval '1 millisecond'`;

const PURGE_DEAD = routine({
  name: "purge_dead",
  takes: ["integer", "uuid", "text"],
  gives: "purged bigint, seen bigint, reached uuid",
  body: `with page as materialized (
  select j.id from :schema.jobs j where j.hold = 3 and j.id > $2 order by j.id limit $1
),
gone as (
  delete from :schema.jobs j where j.id = any(array(
    select x.id from :schema.jobs x where x.id = any(array(${DEAD_DUE})) and x.state = 'dead'
    order by x.id for update of x skip locked)) and j.state = 'dead'
  returning 1
)
select (select count(*) from gone), (select count(*) from page), (select id from page order by id desc limit 1)`,
});

export interface KeepDead {
  queue: string;
  keepMs: number;
}

/** One page of the dead, from a place on. */
export async function purgeDead(
  store: Store,
  keep: readonly KeepDead[],
  limit: number,
  from: string,
): Promise<{ purged: number; reached: string; more: boolean }> {
  const rules = JSON.stringify(keep.map(({ queue, keepMs }) => ({ queue, keep_ms: keepMs })));
  const { rows } = await store.query<{ purged: string; seen: string; reached: string | null }>(PURGE_DEAD, [
    limit,
    from,
    rules,
  ]);
  const { purged, seen, reached } = rows[0]!;
  return { purged: Number(purged), reached: reached ?? from, more: Number(seen) >= limit };
}

const COUNT_DEAD = sql`select count(*)::integer as count from (${DEAD_DUE}) found`;

export async function countDeadDue(store: Store, keep: readonly KeepDead[], limit: number): Promise<number> {
  const rules = JSON.stringify(keep.map(({ queue, keepMs }) => ({ queue, keep_ms: keepMs })));
  const nobody = "00000000-0000-0000-0000-000000000000";
  return (await store.query<{ count: number }>(COUNT_DEAD, [limit, nobody, rules])).rows[0]!.count;
}
