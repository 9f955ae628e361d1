// Brings the schema to this version. Safe when ten processes start at once: one transaction, one advisory lock taken
// inside it (which also works behind a pooler). Refuses to run old code on a newer schema that says it is breaking.
import { DatabaseUnavailable, SchemaOutdated, SchemaTooNew } from "../errors.ts";
import type { Db, Queryable } from "../db/db.ts";
import { isRetryable } from "../db/retryable.ts";
import { formatDuration } from "../shared/duration.ts";
import { jitter, sleep } from "../shared/sleep.ts";
import { MIGRATIONS, type Migration } from "./migrations.generated.ts";
import { quoteSchema } from "../shared/quote-schema.ts";
import { inSchema } from "./in-schema.ts";
import { splitStatements } from "./split-statements.ts";

const LOCK_TIMEOUT_MS = 1_000;
const PAUSE_MS = 500;
const PATIENCE_MS = 60_000;

/** The SQL that would be run from `fromVersion` on, for people who migrate by hand. */
export function migrationSql(schema: string, fromVersion = 0): string {
  const pending = MIGRATIONS.filter((migration) => migration.version > fromVersion);
  return [
    `create schema if not exists ${quoteSchema(schema)};`,
    `${inSchema(MIGRATIONS_TABLE, schema)};`,
    ...pending.map((migration) => `${inSchema(migration.sql, schema)}\n${recordAsText(migration, schema)}`),
  ].join("\n\n");
}

export interface MigrationResult {
  from: number;
  to: number;
  applied: string[];
}

export async function migrate(db: Db, schema: string): Promise<MigrationResult> {
  const before = await readVersion(db, schema);
  refuseNewer(before, schema);
  if (before.version >= latestVersion()) return { from: before.version, to: before.version, applied: [] };
  const until = performance.now() + PATIENCE_MS;
  for (;;) {
    try {
      return await applyPending(db, schema);
    } catch (error) {
      if (!isRetryable(error)) throw error;
      if (performance.now() > until) throw tablesInUse(schema, error);
      await sleep(jitter(PAUSE_MS));
    }
  }
}

/** All of it, or nothing. */
async function applyPending(db: Db, schema: string): Promise<MigrationResult> {
  const quoted = quoteSchema(schema);
  return await db.transaction(
    async (tx) => {
      await tx.query("select pg_advisory_xact_lock(hashtextextended($1, 0))", [`holdfast migrate ${schema}`]);
      // Whoever waits for a whole table makes everybody else wait who comes after: for a moment, and then again.
      await tx.query("select set_config('lock_timeout', $1, true)", [`${LOCK_TIMEOUT_MS}ms`]);
      await createSchema(tx, schema);
      await tx.query(inSchema(MIGRATIONS_TABLE, schema));
      const current = await readVersion(tx, schema);
      refuseNewer(current, schema);
      const applied: string[] = [];
      for (const migration of MIGRATIONS) {
        if (migration.version <= current.version) continue;
        for (const statement of splitStatements(migration.sql)) await tx.query(inSchema(statement, schema));
        await tx.query(`insert into ${quoted}.migrations (version, name, breaking) values ($1, $2, $3)`, [
          migration.version,
          migration.name,
          migration.breaking,
        ]);
        applied.push(migration.name);
      }
      return { from: current.version, to: Math.max(current.version, latestVersion()), applied };
    },
    { timeoutMs: 120_000 },
  );
}

function tablesInUse(schema: string, cause: unknown): DatabaseUnavailable {
  return new DatabaseUnavailable(
    `Schema "${schema}" could not be brought up to date: for ${formatDuration(PATIENCE_MS)} other transactions held its tables. Nothing was changed.`,
    "Look for transactions that stay open (pg_stat_activity, xact_start), let them end, and start again.",
    { cause },
  );
}

/** For processes that must not migrate: throws unless the schema is one this version can work with. */
export async function assertSchema(db: Db, schema: string): Promise<void> {
  const found = await readVersion(db, schema);
  refuseNewer(found, schema);
  if (found.version < latestVersion()) {
    throw new SchemaOutdated(
      found.version === 0
        ? `The database has no Holdfast schema "${schema}".`
        : `Schema "${schema}" is at version ${found.version}; this code needs ${latestVersion()}.`,
      "Run `holdfast migrate`, or open with migrate: true.",
    );
  }
}

export function latestVersion(): number {
  return MIGRATIONS.at(-1)?.version ?? 0;
}

const MIGRATIONS_TABLE = `create table if not exists :schema.migrations (
  version integer primary key,
  name text not null,
  breaking boolean not null,
  applied_at timestamptz not null default now()
)`;

interface FoundVersion {
  version: number;
  /** The newest applied migration that older code cannot live with. */
  breaking: number;
}

async function readVersion(db: Queryable, schema: string): Promise<FoundVersion> {
  const found = await db.query<{ found: string | null }>("select to_regclass($1)::text as found", [
    `${quoteSchema(schema)}.migrations`,
  ]);
  if ((found.rows[0]?.found ?? null) === null) return { version: 0, breaking: 0 };
  const { rows } = await db.query<FoundVersion>(
    `select coalesce(max(version), 0) as version, coalesce(max(version) filter (where breaking), 0) as breaking
     from ${quoteSchema(schema)}.migrations`,
  );
  return rows[0] ?? { version: 0, breaking: 0 };
}

function refuseNewer(found: FoundVersion, schema: string): void {
  if (found.breaking > latestVersion()) {
    throw new SchemaTooNew(
      `Schema "${schema}" is at version ${found.version} and version ${found.breaking} broke with older code; this code knows ${latestVersion()}.`,
      "Upgrade the holdfast package in this process before starting it.",
    );
  }
}

/** `create schema if not exists` needs the right to create one even when it is there already: look first. */
async function createSchema(tx: Queryable, schema: string): Promise<void> {
  const { rows } = await tx.query("select 1 from pg_namespace where nspname = $1", [schema]);
  if (rows.length === 0) await tx.query(`create schema if not exists ${quoteSchema(schema)}`);
}

const recordAsText = (migration: Migration, schema: string): string =>
  `insert into ${quoteSchema(schema)}.migrations (version, name, breaking) values (${migration.version}, '${migration.name}', ${migration.breaking});`;
