// An app's own tables: its migrations in the order of its list, each once, under the same kind of lock as Holdfast's own.
// What was applied stays as it was: a changed or a missing one is refused, with its name.
import { createHash } from "node:crypto";
import type { Db, Queryable } from "../db/db.ts";
import { OptionInvalid, SchemaOutdated } from "../errors.ts";
import { inSchema } from "./in-schema.ts";
import { splitStatements } from "./split-statements.ts";

/** One migration of an app: applied once, in order, with `:schema` for the schema. */
export interface AppMigration {
  /** "001_bots": how people recognise it. Never change it after it was released. */
  name: string;
  /** Plain SQL, `:schema` for the schema. */
  sql: string;
}

interface AppliedRow {
  position: number;
  name: string;
  hash: string;
}

export async function migrateApp(
  db: Db,
  schema: string,
  app: string,
  migrations: readonly AppMigration[],
): Promise<string[]> {
  if (pendingOf(app, migrations, await readApplied(db, schema, app)).length === 0) return [];
  return await db.transaction(
    async (tx) => {
      await tx.query("select pg_advisory_xact_lock(hashtextextended($1, 0))", [`holdfast migrate ${schema}`]);
      const pending = pendingOf(app, migrations, await readApplied(tx, schema, app));
      for (const { migration, position } of pending) {
        for (const statement of splitStatements(migration.sql)) await tx.query(inSchema(statement, schema));
        await tx.query(inSchema(RECORD, schema), [app, position, migration.name, hashOf(migration)]);
      }
      return pending.map(({ migration }) => migration.name);
    },
    { timeoutMs: 120_000 },
  );
}

/** For processes that must not migrate. */
export async function assertApp(
  db: Db,
  schema: string,
  app: string,
  migrations: readonly AppMigration[],
): Promise<void> {
  const pending = pendingOf(app, migrations, await readApplied(db, schema, app));
  if (pending.length === 0) return;
  throw new SchemaOutdated(
    `The app "${app}" needs its migration ${pending[0]!.migration.name}, which was not applied.`,
    "Run `holdfast migrate`, or open with migrate: true.",
  );
}

/** The SQL of all of them, for people who migrate by hand. */
export function appMigrationSql(schema: string, app: string, migrations: readonly AppMigration[]): string {
  return migrations
    .map(({ name, sql }, index) => {
      const values = [`'${app}'`, index + 1, `'${name}'`, `'${hashOf({ name, sql })}'`];
      const record = RECORD.replaceAll(/\$(\d)/g, (_, place: string) => String(values[Number(place) - 1]));
      return inSchema(`${sql.trim().replace(/;?$/, ";")}\n${record};`, schema);
    })
    .join("\n\n");
}

const RECORD = `insert into :schema.app_migrations (app, position, name, hash, applied_at)
values ($1, $2, $3, $4, :schema.clock())`;

async function readApplied(db: Queryable, schema: string, app: string): Promise<AppliedRow[]> {
  const text = "select position, name, hash from :schema.app_migrations where app = $1 order by position";
  return (await db.query<AppliedRow>(inSchema(text, schema), [app])).rows;
}

interface Pending {
  migration: AppMigration;
  position: number;
}

/** More applied than listed is an older version of the app on a newer database: its own matter. */
function pendingOf(app: string, migrations: readonly AppMigration[], applied: readonly AppliedRow[]): Pending[] {
  for (const [index, migration] of migrations.entries()) {
    const there = applied[index];
    if (!there || (there.name === migration.name && there.hash === hashOf(migration))) continue;
    const what =
      there.name === migration.name
        ? `The migration ${there.name} of the app "${app}" was changed after it had been applied.`
        : `The app "${app}" has ${migration.name} where the database already has ${there.name}.`;
    throw new OptionInvalid(what, "Put it back as it was, and add a new migration at the end of the list.");
  }
  return migrations
    .map((migration, index) => ({ migration, position: index + 1 }))
    .filter(({ position }) => position > applied.length);
}

function hashOf({ sql }: AppMigration): string {
  // White space at the ends is the editor's.
  return createHash("sha256").update(sql.trim()).digest("hex");
}
