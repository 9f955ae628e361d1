// What the database says about itself, for a person who asks whether all is well. Catalogues and statistics only.
import { sql, type Store } from "../sql.ts";

export interface ServerFacts {
  version: string;
  versionNumber: number;
  /** By name: fsync, autovacuum, max_connections and the like. */
  settings: Record<string, string>;
  /** All connections to the server now, and how many there may be for plain roles. */
  connections: number;
  mostConnections: number;
  role: string;
  ownsTables: boolean;
}

const ASKED = [
  "fsync",
  "full_page_writes",
  "synchronous_commit",
  "autovacuum",
  "track_counts",
  "default_transaction_read_only",
];

const FACTS = sql`
select current_setting('server_version') as version, current_setting('server_version_num')::integer as "versionNumber",
  (select jsonb_object_agg(s.name, current_setting(s.name)) from unnest($1::text[]) as s (name)) as settings,
  (select count(*) from pg_stat_activity where backend_type = 'client backend')::integer as connections,
  (current_setting('max_connections')::integer - current_setting('superuser_reserved_connections')::integer) as "mostConnections",
  current_user as role,
  coalesce((select pg_has_role(c.relowner, 'usage') from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where n.nspname = $2 and c.relname = 'jobs'), false) as "ownsTables"`;

export async function readServerFacts(store: Store): Promise<ServerFacts> {
  return (await store.query<ServerFacts>(FACTS, [ASKED, store.schema])).rows[0]!;
}

export interface HeldSnapshot {
  what: "session" | "prepared" | "slot";
  name: string;
  /** null: not known. */
  forMs: number | null;
}

/** What keeps dead rows from being removed: sessions with an old snapshot, forgotten two-phase commits, idle slots. */
const SNAPSHOTS = sql`
select 'session' as what, coalesce(nullif(a.application_name, ''), 'unnamed') || ' (pid ' || a.pid || ', ' || coalesce(a.state, 'unknown') || ')' as name,
  (extract(epoch from now() - a.xact_start) * 1000)::float8 as "forMs"
from pg_stat_activity a
where a.backend_xmin is not null and a.xact_start < now() - $1::float8 * interval '1 millisecond' and a.pid <> pg_backend_pid()
union all
select 'prepared', p.gid, (extract(epoch from now() - p.prepared) * 1000)::float8
from pg_prepared_xacts p where p.prepared < now() - $1::float8 * interval '1 millisecond'
union all
select 'slot', s.slot_name::text, null from pg_replication_slots s
where not s.active and (s.xmin is not null or s.catalog_xmin is not null)
limit 20`;

export async function readHeldSnapshots(store: Store, olderThanMs: number): Promise<HeldSnapshot[]> {
  return (await store.query<HeldSnapshot>(SNAPSHOTS, [olderThanMs])).rows;
}

export interface Bloated {
  table: string;
  dead: number;
  live: number;
}

const BLOATED = sql`
select s.relname as table, s.n_dead_tup::float8 as dead, s.n_live_tup::float8 as live from pg_stat_user_tables s
where s.schemaname = $1 and s.n_dead_tup > 20000 and s.n_dead_tup > s.n_live_tup
order by s.n_dead_tup desc limit 10`;

export async function readBloated(store: Store): Promise<Bloated[]> {
  return (await store.query<Bloated>(BLOATED, [store.schema])).rows;
}

const NOT_VACUUMED = sql`
select c.relname as table from pg_class c join pg_namespace n on n.oid = c.relnamespace
where n.nspname = $1 and c.relkind = 'r' and c.reloptions && array['autovacuum_enabled=off', 'autovacuum_enabled=false'] order by 1`;

/** Tables that somebody told autovacuum to leave alone. */
export async function readNotVacuumed(store: Store): Promise<string[]> {
  return (await store.query<{ table: string }>(NOT_VACUUMED, [store.schema])).rows.map(({ table }) => table);
}

/** What a person runs to undo that. */
export const autovacuumAgain = (table: string): string => `alter table ${table} reset (autovacuum_enabled);`;

export interface SchemaObjects {
  tables: string[];
  /** true: it can be used. */
  indexes: Record<string, boolean>;
}

const OBJECTS = sql`
select (select coalesce(array_agg(c.relname::text), '{}') from pg_class c where c.relnamespace = n.oid and c.relkind in ('r', 'p')) as tables,
  (select coalesce(jsonb_object_agg(c.relname, i.indisvalid and i.indisready), '{}') from pg_index i join pg_class c on c.oid = i.indexrelid
    where c.relnamespace = n.oid) as indexes
from pg_namespace n where n.nspname = $1`;

export async function readObjects(store: Store): Promise<SchemaObjects> {
  return (await store.query<SchemaObjects>(OBJECTS, [store.schema])).rows[0]!;
}

/** Rights on the tables that an enqueue and a run need, and this role does not have. */
const MISSING_RIGHTS = sql`
select t.name || ': ' || p.privilege as missing
from unnest(array['jobs', 'job_keys', 'job_groups', 'leases', 'job_history', 'attempts', 'workers', 'chores']) as t (name)
cross join unnest(array['select', 'insert', 'update', 'delete']) as p (privilege)
join pg_class c on c.relname = t.name join pg_namespace n on n.oid = c.relnamespace and n.nspname = $1
where not has_table_privilege(c.oid, p.privilege) order by 1`;

export async function readMissingRights(store: Store): Promise<string[]> {
  return (await store.query<{ missing: string }>(MISSING_RIGHTS, [store.schema])).rows.map(({ missing }) => missing);
}
