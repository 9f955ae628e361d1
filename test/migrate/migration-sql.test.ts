// The printed SQL, run by hand on an empty database, makes the same schema that migrate() makes.
import { afterAll, beforeAll, expect, test } from "vitest";
import { openPostgres } from "#src/db/postgres.js";
import type { Db } from "#src/db/db.js";
import { latestVersion, migrate, migrationSql } from "#src/migrate/migrate.js";
import { installRoutines, routinesSql } from "#src/store/routines.js";
import { makeStore } from "#src/store/sql.js";
import { runDue, openTest } from "#src/testing/index.js";
import { createDatabase, type TestDatabase } from "../support/database.ts";
import { makeKind } from "../support/make.ts";

let databases: TestDatabase[];
let migrated: Db;
let byHand: Db;
beforeAll(async () => {
  databases = [await createDatabase(), await createDatabase()];
  migrated = await openPostgres({ url: databases[0]!.url });
  byHand = await openPostgres({ url: databases[1]!.url });
});
afterAll(async () => {
  await Promise.all([migrated.close(), byHand.close()]);
  await Promise.all(databases.map((database) => database.drop()));
});

/** Everything Postgres knows about a schema, as text. */
async function describeSchema(db: Db, schema: string): Promise<Record<string, unknown[]>> {
  const queries = {
    tables: `select c.relname, c.relkind, c.reloptions, pg_get_partkeydef(c.oid) as partitioned
      from pg_class c where c.relnamespace = s.oid and c.relkind in ('r', 'p', 'v', 'S') order by 1`,
    columns: `select c.relname, a.attname, a.attnum, format_type(a.atttypid, a.atttypmod) as type, a.attnotnull,
        a.attstorage, pg_get_expr(d.adbin, d.adrelid) as value
      from pg_attribute a join pg_class c on c.oid = a.attrelid
      left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
      where c.relnamespace = s.oid and c.relkind in ('r', 'p') and a.attnum > 0 and not a.attisdropped order by 1, 3`,
    indexes: `select pg_get_indexdef(i.indexrelid) as text from pg_index i join pg_class c on c.oid = i.indrelid
      where c.relnamespace = s.oid order by 1`,
    constraints: `select c.conname, pg_get_constraintdef(c.oid) as text from pg_constraint c
      where c.connamespace = s.oid order by 1, 2`,
    functions: `select pg_get_functiondef(p.oid) as text from pg_proc p where p.pronamespace = s.oid order by 1`,
    types: `select t.typname, e.enumlabel from pg_type t join pg_enum e on e.enumtypid = t.oid
      where t.typnamespace = s.oid order by 1, e.enumsortorder`,
  };
  const described: Record<string, unknown[]> = {};
  for (const [name, query] of Object.entries(queries)) {
    const { rows } = await db.query(
      `select x.* from pg_namespace s cross join lateral (${query}) x where s.nspname = $1`,
      [schema],
    );
    described[name] = rows;
  }
  return described;
}

test.each(["holdfast", 'odd "name"; --'])("in schema %j", async (schema) => {
  await migrate(migrated, schema);
  await installRoutines(makeStore(migrated, schema));
  await byHand.script(`${migrationSql(schema)}\n\n${routinesSql(schema)}`);
  const [expected, made] = await Promise.all([describeSchema(migrated, schema), describeSchema(byHand, schema)]);
  expect(made).toEqual(expected);
  for (const [name, rows] of Object.entries(expected)) expect(rows.length, name).toBeGreaterThan(0);
  // And it is taken for migrated.
  expect(await migrate(byHand, schema)).toMatchObject({ from: latestVersion(), applied: [] });
});

test("and works", async () => {
  const hf = await openTest({ database: databases[1]!.url, migrate: false });
  const kind = makeKind();
  await hf.enqueue(kind, 1);
  expect(await runDue(hf, [kind])).toMatchObject({ done: 1 });
  await hf.close();
});

test("from a version on it holds only what follows", () => {
  expect(migrationSql("s", latestVersion())).not.toContain('create table "s".jobs');
  expect(migrationSql("s", 0)).toContain('create table "s".jobs');
});
