// Facts about the database, for people: its version, what was migrated, how large the tables are. From the catalogue only.
import { sql, type Store } from "../sql.ts";

const FACTS = sql`
select current_setting('server_version') as version, current_database() as name,
  (select count(*)::integer from pg_stat_activity where datname = current_database()) as connections,
  current_setting('max_connections')::integer as "maxConnections"`;

const MIGRATIONS = sql`
select version, name, applied_at as "appliedAt" from :schema.migrations order by version`;

// Partitions are told together, as their parent.
const TABLES = sql`
select coalesce(p.relname, c.relname)::text as name, sum(pg_total_relation_size(c.oid))::float8 as bytes,
  sum(greatest(c.reltuples, 0))::float8 as rows, coalesce(sum(s.n_dead_tup), 0)::float8 as "deadRows",
  max(greatest(s.last_autovacuum, s.last_vacuum)) as "vacuumedAt", count(*)::integer as parts
from pg_class c join pg_namespace n on n.oid = c.relnamespace
left join pg_inherits i on i.inhrelid = c.oid left join pg_class p on p.oid = i.inhparent
left join pg_stat_all_tables s on s.relid = c.oid
where n.nspname = $1 and c.relkind = 'r' group by 1 order by 2 desc limit 50`;

export interface DatabaseFacts {
  version: string;
  name: string;
  connections: number;
  maxConnections: number;
}

export interface AppliedMigration {
  version: number;
  name: string;
  appliedAt: Date;
}

export interface TableFacts {
  name: string;
  bytes: number;
  /** As the planner thinks. */
  rows: number;
  deadRows: number;
  vacuumedAt: Date | null;
  /** Of the history: its days. */
  parts: number;
}

export async function databaseFacts(store: Store): Promise<DatabaseFacts> {
  return (await store.query<DatabaseFacts>(FACTS)).rows[0]!;
}

export async function appliedMigrations(store: Store): Promise<AppliedMigration[]> {
  return (await store.query<AppliedMigration>(MIGRATIONS)).rows;
}

export async function tableFacts(store: Store): Promise<TableFacts[]> {
  return (await store.query<TableFacts>(TABLES, [store.schema])).rows;
}
