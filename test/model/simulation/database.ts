// PostgreSQL for simulations, as one session whose clock is the simulation's: PGlite in memory, in this thread, or a
// database on a server, which is several times as fast. Neither may have a timer of its own.
import { PGlite, types } from "@electric-sql/pglite";
import { Client } from "pg";
import type { Db, QueryResult, Queryable } from "#src/db/db.js";
import { types as serverTypes } from "#src/db/postgres-types.js";
import { migrate } from "#src/migrate/migrate.js";
import { makePartitions } from "#src/store/janitor/partitions.js";
import { installRoutines } from "#src/store/routines.js";
import { makeStore } from "#src/store/sql.js";
import { assertSound, soundFunction } from "../../support/assert-sound.ts";
import { instrumentation } from "../../support/history/facts.ts";

export const SCHEMA = "hf_sim";

export interface SimDatabase extends Queryable {
  /** What the database's clock says from now on. */
  setClock(ms: number): Promise<void>;
  transaction<T>(work: (tx: Queryable) => Promise<T>): Promise<T>;
  /** As empty as after the migrations. */
  empty(): Promise<void>;
  /** What breaks a rule of support/assert-sound.ts, with the rows that do. */
  unsound(): Promise<string | undefined>;
  close(): Promise<void>;
}

const TABLES = [
  "jobs",
  "leases",
  "job_history",
  "job_keys",
  "job_groups",
  "attempts",
  "workers",
  "job_notes",
  "job_saved_items",
  "chores",
  "chore_runs",
  "queues",
].map((table) => `${SCHEMA}.${table}`);
const ALL = [...TABLES, "proof.audit", "proof.exec_log", "proof.effects"];
const TRUNCATE_EVERY = 50;

interface Session {
  query<Row>(text: string, values?: readonly unknown[]): Promise<QueryResult<Row>>;
  script(text: string): Promise<void>;
  close(): Promise<void>;
}

/** `startMs`: the database's clock at first. */
export async function openSimMemory(startMs: number): Promise<SimDatabase> {
  const asText = (text: string): string => text;
  const pg = await PGlite.create({ parsers: { [types.INT8]: asText, [types.NUMERIC]: asText } });
  return await prepare(startMs, {
    async query<Row>(text: string, values: readonly unknown[] = []) {
      const { rows, affectedRows = 0 } = await pg.query<Row>(text, [...values]);
      return { rows, rowCount: rows.length > 0 ? rows.length : affectedRows };
    },
    script: async (text) => void (await pg.exec(text)),
    close: () => pg.close(),
  });
}

export async function openSimServer(startMs: number, url: string): Promise<SimDatabase> {
  const client = new Client({ connectionString: url, types: serverTypes });
  await client.connect();
  await client.query("set synchronous_commit = off");
  return await prepare(startMs, {
    async query<Row>(text: string, values: readonly unknown[] = []) {
      const { rows, rowCount } = await client.query({ text, values: [...values] });
      return { rows: rows as Row[], rowCount: rowCount ?? 0 };
    },
    script: async (text) => void (await client.query(text)),
    close: () => client.end(),
  });
}

async function prepare(startMs: number, session: Session): Promise<SimDatabase> {
  const { query, script } = session;
  let emptied = 0;
  const made: SimDatabase = {
    query,
    async setClock(ms) {
      await query("select set_config('proof.now', $1, false)", [new Date(ms).toISOString()]);
    },
    async transaction(work) {
      await script("begin");
      let result;
      try {
        result = await work({ query });
      } catch (error) {
        await script("rollback");
        throw error;
      }
      await script("commit");
      return result;
    },
    async empty() {
      emptied += 1;
      if (emptied % TRUNCATE_EVERY === 0) await script(`truncate ${ALL.join(", ")}`);
      else await script(ALL.map((table) => `delete from ${table}`).join(";"));
    },
    async unsound() {
      if ((await query("select * from proof.sound()")).rows.length === 0) return undefined;
      return await assertSound(db, SCHEMA).then(
        () => undefined,
        (error: Error) => error.message,
      );
    },
    close: () => session.close(),
  };
  const db = asDb(made, { script });
  await migrate(db, SCHEMA);
  const store = makeStore(db, SCHEMA);
  await installRoutines(store);
  await made.setClock(startMs);
  await script(`create or replace function ${SCHEMA}.clock() returns timestamptz language sql stable
    as 'select pg_catalog.current_setting(''proof.now'')::pg_catalog.timestamptz'`);
  await makePartitions(store);
  await script(instrumentation(SCHEMA));
  await script(soundFunction(SCHEMA, "proof.sound"));
  return made;
}

/** A Db that has only what the product's verbs need. It passes for a server, so that workers count as processes. */
export function asDb(parts: Pick<Db, "query" | "transaction">, more: Partial<Db> = {}): Db {
  return {
    tier: "server",
    query: (text, values, options) => parts.query(text, values, options),
    transaction: (work, options) => parts.transaction(work, options),
    script: () => Promise.reject(new Error("There are no scripts in a simulation.")),
    copyIn: undefined,
    listen: () => Promise.reject(new Error("There is nothing to listen to.")),
    assertOutside: () => {},
    load: () => ({ most: 1, busy: 0, idle: 1, waiting: 0 }),
    notify: () => Promise.resolve(),
    close: () => Promise.resolve(),
    ...more,
  };
}
