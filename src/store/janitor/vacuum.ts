// Keeps the tables that change most free of dead rows, where autovacuum is late or is not there at all.
import { sql, type Statement, type Store } from "../sql.ts";

/** Rows come and go here all the time. */
const HOT = [
  "jobs",
  "leases",
  "job_keys",
  "job_groups",
  "workers",
  "chores",
  "job_notes",
  "queue_depths",
  "run_counts",
  "parcels",
  "parcel_drafts",
  "parcel_chunks",
  "inboxes",
];

const DEAD_ROWS = sql`
select s.relname as name, s.n_dead_tup::float8 as dead, s.last_vacuum::text as vacuumed
from pg_stat_user_tables s join pg_class c on c.oid = s.relid
where s.schemaname = $1 and s.relname = any($2::text[])
  -- Others' tables are not vacuumed, and nobody says so.
  and pg_has_role(c.relowner, 'usage')
  and s.n_dead_tup > 1000 and s.n_dead_tup > 0.2 * s.n_live_tup
  -- Somebody is at it, or has just been.
  and coalesce(s.last_autovacuum, '-infinity') < now() - interval '30 seconds'
  and not exists (select 1 from pg_stat_progress_vacuum v where v.relid = s.relid)`;

const DEAD_ROWS_OF = sql`
select relname as name, n_dead_tup::float8 as dead, last_vacuum::text as vacuumed
from pg_stat_user_tables where schemaname = $1 and relname = $2`;

export interface DeadRows {
  name: string;
  dead: number;
  /** When it last was, by hand or by us; null: not that the statistics know of. */
  vacuumed: string | null;
}

/** Hot tables that hold many dead rows. Server tier: the embedded one does not count them in time. */
export async function tablesToVacuum(store: Store): Promise<DeadRows[]> {
  return (await store.query<DeadRows>(DEAD_ROWS, [store.schema, HOT])).rows;
}

/** The same for one table, however many it has. */
export async function deadRowsOf(store: Store, table: string): Promise<DeadRows | undefined> {
  return (await store.query<DeadRows>(DEAD_ROWS_OF, [store.schema, table])).rows[0];
}

/** Never waits for a lock, nor makes anybody wait. */
const vacuum = (table: string): Statement => ({
  textIn: (quotedSchema) => `vacuum (skip_locked, truncate false, analyze) ${quotedSchema}.${table}`,
});

export async function vacuumTable(store: Store, table: string, timeoutMs: number): Promise<void> {
  if (!HOT.includes(table)) throw new Error(`${table} is not a table that the janitor vacuums.`);
  await store.query(vacuum(table), [], { timeoutMs });
}

export async function vacuumHot(store: Store, timeoutMs: number): Promise<void> {
  for (const table of HOT) await vacuumTable(store, table, timeoutMs);
}

const WAL_BYTES = sql`select (pg_current_wal_lsn() - '0/0'::pg_lsn)::float8 as bytes`;
const CHECKPOINT: Statement = { textIn: () => "checkpoint" };

/** How much was ever written to the log. */
export async function walBytes(store: Store): Promise<number> {
  return (await store.query<{ bytes: number }>(WAL_BYTES)).rows[0]!.bytes;
}

export async function checkpoint(store: Store, timeoutMs: number): Promise<void> {
  await store.query(CHECKPOINT, [], { timeoutMs });
}
