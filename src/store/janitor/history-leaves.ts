// The history's leaves, one per UTC day, by name. A ctid means nothing across partitions, so what is done to a day is
// done to its leaf.
import { quoteSchema } from "../../shared/quote-schema.ts";
import { routine, sql, type Statement, type Store } from "../sql.ts";
import { historyName } from "./partitions.ts";

export interface Leaf {
  name: string;
  /** "2026-01-31". */
  day: string;
  pages: number;
  /** attached; detaching: begun and not finished; loose: detached, and left behind by somebody who died. */
  place: "attached" | "detaching" | "loose";
  /** Nothing is added to it any more. */
  isOver: boolean;
  /** Our role may detach and drop it. */
  isOurs: boolean;
}

const LEAVES = sql`
select c.relname as name, to_char(to_date(right(c.relname, 8), 'YYYYMMDD'), 'YYYY-MM-DD') as day,
  (pg_relation_size(c.oid) / current_setting('block_size')::integer)::integer as pages,
  case when i.inhrelid is null then 'loose' when i.inhdetachpending then 'detaching' else 'attached' end as place,
  to_date(right(c.relname, 8), 'YYYYMMDD') < (:schema.clock() at time zone 'UTC')::date - 1 as "isOver",
  pg_has_role(c.relowner, 'usage') and pg_has_role(p.relowner, 'usage') as "isOurs"
from pg_class p join pg_class c on c.relnamespace = p.relnamespace and c.relkind = 'r'
left join pg_inherits i on i.inhrelid = c.oid and i.inhparent = p.oid
where p.oid = $1::text::regclass and c.relname ~ '^job_history_[0-9]{8}$'
order by c.relname`;

export async function listLeaves(store: Store): Promise<Leaf[]> {
  return (await store.query<Leaf>(LEAVES, [historyName(store)])).rows;
}

/** The history's table and its schema, asked of the catalogue: as text a name could hold any quote. */
const HISTORY = `(select tableoid from :schema.migrations limit 1) m join pg_class t on t.oid = m.tableoid
    join pg_namespace n on n.oid = t.relnamespace join pg_class c on c.relnamespace = n.oid and c.relname = 'job_history'`;

const placeOf = (store: Store, leaf: Leaf): string => `${quoteSchema(store.schema)}."${leaf.name}"`;

const PURGE_LEAF = routine({
  name: "purge_leaf",
  takes: ["text", "integer", "timestamptz"],
  gives: "state text, purged bigint, reached timestamptz",
  body: `execute format('
with due as materialized (
  select ctid, purge_at from %1$s where purge_early and purge_at < $3 and purge_at >= $2
  order by purge_at limit $1 for update skip locked
),
gone as (delete from %1$s where ctid = any(array(select ctid from due)) returning state)
select g.state::text, count(*), (select max(purge_at) from due) from gone g group by g.state', $1) using $2, $3, :schema.clock()`,
});

export interface Purged {
  /** How many of which state. */
  rows: Record<string, number>;
  total: number;
  /** Where the next statement may begin, so that it does not walk past what is gone. */
  reached: Date | undefined;
}

/** Finished jobs of this leaf that go before their day does. */
export async function purgeLeaf(store: Store, leaf: Leaf, limit: number, from: Date | undefined): Promise<Purged> {
  const { rows } = await store.query<{ state: string; purged: string; reached: Date }>(PURGE_LEAF, [
    placeOf(store, leaf),
    limit,
    from?.toISOString() ?? "-infinity",
  ]);
  const counts = Object.fromEntries(rows.map((row) => [row.state, Number(row.purged)]));
  const total = rows.reduce((sum, row) => sum + Number(row.purged), 0);
  return { rows: counts, total, reached: rows[0]?.reached };
}

const WALK_LEAF = routine({
  name: "walk_leaf",
  takes: ["text", "integer", "integer", "boolean"],
  gives: "last text, next text, purged bigint",
  body: `execute format('
with here as materialized (
  select ctid, coalesce(purge_at, ''infinity'') as purge_at from %1$s where ctid >= $1 and ctid < $2
),
gone as (
  delete from %1$s where $3 and ctid = any(array(select ctid from here where purge_at < $4)) returning 1
)
select max(purge_at)::text, (min(purge_at) filter (where not $3 or purge_at >= $4))::text,
  (select count(*) from gone) from here', $1)
using ('(' || $2 || ',0)')::tid, ('(' || $3 || ',0)')::tid, $4, :schema.clock()`,
});

const KNOWN_DAYS = sql`
select to_char(day, 'YYYY-MM-DD') as day, walked, drop_at is not null as known,
  coalesce(drop_at <= :schema.clock(), false) as "canDrop",
  coalesce(purge_at <= :schema.clock() - interval '1 day', false) as "canPurge"
from :schema.history_days`;

const WALKED = sql`
insert into :schema.history_days as d (day, walked, walk_last, walk_next) values ($1::date, $2, $3::text::timestamptz, $4::text::timestamptz)
on conflict (day) do update set walked = excluded.walked,
  walk_last = greatest(d.walk_last, excluded.walk_last), walk_next = least(d.walk_next, excluded.walk_next)`;

const WALK_ENDED = sql`
update :schema.history_days set walked = 0, drop_at = coalesce(walk_last, '-infinity'),
  purge_at = coalesce(walk_next, 'infinity'), walk_last = null, walk_next = null
where day = $1::date`;

const FORGET_DAY = sql`delete from :schema.history_days where day = $1::date`;

export interface KnownDay {
  day: string;
  walked: number;
  /** It was read to its end once. */
  known: boolean;
  /** Every job in it is past its retention. */
  canDrop: boolean;
  /** Some have been past theirs for a day. */
  canPurge: boolean;
}

export async function knownDays(store: Store): Promise<Map<string, KnownDay>> {
  const { rows } = await store.query<KnownDay>(KNOWN_DAYS);
  return new Map(rows.map((row) => [row.day, row]));
}

export interface WalkInput {
  leaf: Leaf;
  fromPage: number;
  pages: number;
  /** Deletes what is past its retention on the way. */
  purge: boolean;
}

/** One step through a leaf. Returns how many rows went. */
export async function walkLeaf(store: Store, { leaf, fromPage, pages, purge }: WalkInput): Promise<number> {
  const toPage = fromPage + pages;
  const { rows } = await store.query<{ last: string | null; next: string | null; purged: string }>(WALK_LEAF, [
    placeOf(store, leaf),
    fromPage,
    toPage,
    purge,
  ]);
  const step = rows[0]!;
  await store.query(WALKED, [leaf.day, toPage, step.last, step.next]);
  if (toPage >= leaf.pages) await store.query(WALK_ENDED, [leaf.day]);
  return Number(step.purged);
}

const statement = (text: string): Statement => ({
  textIn: (quotedSchema) => text.replaceAll(":schema", () => quotedSchema),
});

// On behalf of a role that does not own the tables, and may delete what is in them. Only what is past its retention.
// Not concurrently, which no function can do: a short lock, or none.
const DROP_DAY = routine({
  name: "drop_day",
  takes: ["date"],
  gives: "void",
  asOwner: true,
  settings: ["lock_timeout = '100ms'"],
  body: `
if not has_table_privilege(coalesce(nullif(current_setting('role'), 'none'), session_user), (select c.oid from ${HISTORY}), 'delete') then
  raise insufficient_privilege using message = 'permission denied to drop a day of the history';
end if;
if $1 >= (:schema.clock() at time zone 'UTC')::date - 1 or (
  exists (select 1 from ${HISTORY} join pg_inherits i on i.inhparent = c.oid join pg_class l on l.oid = i.inhrelid
    where l.relname = 'job_history_' || to_char($1, 'YYYYMMDD'))
  and not exists (select 1 from :schema.history_days d where d.day = $1 and d.drop_at <= :schema.clock())
) then raise exception 'not a day to be dropped: %', $1; end if;
if exists (select 1 from ${HISTORY} join pg_inherits i on i.inhparent = c.oid join pg_class l on l.oid = i.inhrelid
  where l.relname = 'job_history_' || to_char($1, 'YYYYMMDD')) then
  execute (select format('alter table %1$I.job_history detach partition %1$I.%2$I', n.nspname, 'job_history_' || to_char($1, 'YYYYMMDD'))
    from ${HISTORY});
end if;
execute (select format('drop table if exists %1$I.%2$I', n.nspname, 'job_history_' || to_char($1, 'YYYYMMDD')) from ${HISTORY});
delete from :schema.history_days d where d.day = $1`,
});

/** Takes the leaf out and drops it. Throws when it would have to wait for somebody: come back later. */
export async function dropLeaf(store: Store, leaf: Leaf): Promise<void> {
  if (!leaf.isOurs && leaf.place !== "detaching") {
    await store.query(DROP_DAY, [leaf.day]);
    return;
  }
  const name = `:schema."${leaf.name}"`;
  const isServer = store.tier === "server";
  if (leaf.place === "detaching") {
    await store.query(statement(`alter table :schema.job_history detach partition ${name} finalize`));
  } else if (leaf.place === "attached" && isServer) {
    // No lock that a settle would wait for.
    await store.query(statement(`alter table :schema.job_history detach partition ${name} concurrently`));
  }
  await store.transaction(async (tx) => {
    await tx.query(statement("set local lock_timeout = '100ms'"));
    if (leaf.place === "attached" && !isServer) {
      await tx.query(statement(`alter table :schema.job_history detach partition ${name}`));
    }
    await tx.query(statement(`drop table ${name}`));
    await tx.query(FORGET_DAY, [leaf.day]);
  });
}

const COUNT_EARLY = sql`
select h.state::text as state, count(*)::integer as count from (
  select state from :schema.job_history where purge_early and purge_at < :schema.clock() limit $1
) h group by h.state`;

const COUNT_DAYS = sql`
select coalesce(sum(greatest(c.reltuples, 0)), 0)::bigint as rows, count(*)::integer as days
from :schema.history_days d join pg_class c on c.relname = 'job_history_' || to_char(d.day, 'YYYYMMDD')
join pg_class p on p.oid = $1::text::regclass and p.relnamespace = c.relnamespace
where d.drop_at <= :schema.clock()`;

/** What a purge would remove: rows by state, and whole days. */
export async function previewHistory(store: Store, limit: number): Promise<Record<string, number>> {
  const early = await store.query<{ state: string; count: number }>(COUNT_EARLY, [limit]);
  const days = await store.query<{ rows: string; days: number }>(COUNT_DAYS, [historyName(store)]);
  const counts = Object.fromEntries(early.rows.map((row) => [row.state, row.count]));
  const { days: whole, rows } = days.rows[0]!;
  return { ...counts, ...(whole > 0 ? { days: whole, "rows-in-days": Number(rows) } : {}) };
}
