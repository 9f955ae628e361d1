// Removes finished jobs whose retention is over, and keys whose life is. Each call is one bounded statement; the caller
// repeats while it is worth it. A purge of jobs never touches the ledger of keys.
import { historyName } from "./partitions.ts";
import { routine, sql, type Statement, type Store } from "../sql.ts";

const PURGE_EARLY = routine({
  name: "purge_finished",
  takes: ["integer"],
  gives: "count",
  body: `with due as materialized (
  select id from :schema.job_history where purge_early and purge_at < :schema.clock()
  order by purge_at limit $1 for update skip locked
)
-- A job is finished once, so its id is enough; by array, so that each partition is searched and none is walked.
delete from :schema.job_history h where h.id = any(array(select id from due)) and h.purge_early`,
});

const PURGE_KEYS = routine({
  name: "purge_keys",
  takes: ["integer"],
  gives: "count",
  body: `with due as materialized (
  select k.ctid from :schema.job_keys k
  where k.expires_at < :schema.clock() and not exists (select 1 from :schema.jobs j where j.id = k.job_id)
  order by k.expires_at limit $1 for update of k skip locked
)
delete from :schema.job_keys k where k.ctid = any(array(select ctid from due))`,
});

async function counted(store: Store, statement: Statement, limit: number): Promise<number> {
  const { rows } = await store.query<{ count: string }>(statement, [limit]);
  return Number(rows[0]?.count ?? 0);
}

/** Finished jobs that go before their day's partition does. */
export function purgeEarly(store: Store, limit: number): Promise<number> {
  return counted(store, PURGE_EARLY, limit);
}

/** Keys past their life whose job is neither live nor dead. */
export function purgeKeys(store: Store, limit: number): Promise<number> {
  return counted(store, PURGE_KEYS, limit);
}

const EXPIRED_PARTITIONS = sql`
select c.relname as name
from pg_inherits i join pg_class c on c.oid = i.inhrelid
where i.inhparent = $1::text::regclass and c.relname ~ '^job_history_[0-9]{8}$'
  and to_date(right(c.relname, 8), 'YYYYMMDD') < (:schema.clock() at time zone 'UTC')::date - 1
order by c.relname`;

const leaf = (name: string, text: string): Statement => ({
  // In one pass: the schema's own name may hold either word.
  textIn: (quotedSchema) =>
    text.replaceAll(/:leaf|:schema/g, (word) => (word === ":leaf" ? `${quotedSchema}."${name}"` : quotedSchema)),
});

/** Drops whole days whose every job is past its retention. Returns the names of what it dropped. */
export async function dropExpiredPartitions(store: Store): Promise<string[]> {
  const { rows } = await store.query<{ name: string }>(EXPIRED_PARTITIONS, [historyName(store)]);
  const dropped: string[] = [];
  for (const { name } of rows) {
    const kept = await store.query(
      leaf(name, "select 1 from :leaf where purge_at is null or purge_at > :schema.clock() limit 1"),
    );
    if (kept.rows.length > 0) continue;
    // Detaching needs a short exclusive lock on the parent: rather give up and come back than make settles wait.
    await store.transaction(async (tx) => {
      await tx.query(leaf(name, "set local lock_timeout = '100ms'"));
      await tx.query(leaf(name, "alter table :schema.job_history detach partition :leaf"));
      await tx.query(leaf(name, "drop table :leaf"));
    });
    dropped.push(name);
  }
  return dropped;
}

export const PURGE_STATEMENTS: Record<string, Statement> = { PURGE_EARLY, PURGE_KEYS };
