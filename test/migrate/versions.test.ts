// Old code does not touch a schema that a newer version broke with, and works with one it did not.
import { afterAll, beforeAll, expect, test } from "vitest";
import { openPostgres } from "#src/db/postgres.js";
import type { Db } from "#src/db/db.js";
import { SchemaOutdated, SchemaTooNew } from "#src/errors.js";
import { assertSchema, latestVersion, migrate } from "#src/migrate/migrate.js";
import { open } from "#src/open.js";
import { makeStore } from "#src/store/sql.js";
import { moveClock } from "#src/store/stats/move-clock.js";
import { runDue, openTest } from "#src/testing/index.js";
import { createDatabase, type TestDatabase } from "../support/database.ts";
import { caught, makeKind } from "../support/make.ts";

let database: TestDatabase;
let db: Db;
beforeAll(async () => {
  database = await createDatabase();
  db = await openPostgres({ url: database.url });
});
afterAll(async () => {
  await db.close();
  await database.drop();
});

const newer = (schema: string, breaking: boolean): Promise<unknown> =>
  db.query(`insert into ${schema}.migrations (version, name, breaking) values (900, '900_later', ${breaking})`);

test("a newer schema that says it breaks with older code is refused, with what to do", async () => {
  await migrate(db, "broken");
  await newer("broken", true);
  const error = await caught(open({ database: database.url, schema: "broken" }));
  expect(error).toBeInstanceOf(SchemaTooNew);
  expect(error).toMatchObject({
    message: `Schema "broken" is at version 900 and version 900 broke with older code; this code knows ${latestVersion()}.`,
    hint: expect.stringContaining("Upgrade"),
  });
  expect(await caught(assertSchema(db, "broken"))).toBeInstanceOf(SchemaTooNew);
  expect(await caught(open({ database: database.url, schema: "broken", migrate: false }))).toBeInstanceOf(SchemaTooNew);
});

test("a newer schema that does not is worked with, and left as it is", async () => {
  await migrate(db, "newer");
  await newer("newer", false);
  expect(await migrate(db, "newer")).toMatchObject({ from: 900, to: 900, applied: [] });
  const hf = await openTest({ database: database.url, schema: "newer" });
  const kind = makeKind();
  await hf.enqueue(kind, 1);
  expect(await runDue(hf, [kind])).toMatchObject({ done: 1 });
  await hf.close();
});

test("with migrate: false a schema that is missing or old is refused, and nothing is made", async () => {
  const error = await caught(open({ database: database.url, schema: "absent", migrate: false }));
  expect(error).toBeInstanceOf(SchemaOutdated);
  expect(error).toMatchObject({ message: expect.stringContaining('no Holdfast schema "absent"') });
  expect((await db.query("select 1 from pg_namespace where nspname = 'absent'")).rowCount).toBe(0);
  await migrate(db, "older");
  await db.query("delete from older.migrations where version > 1");
  expect(await caught(open({ database: database.url, schema: "older", migrate: false }))).toMatchObject({
    code: "HOLDFAST_SCHEMA_OUTDATED",
    message: `Schema "older" is at version 1; this code needs ${latestVersion()}.`,
  });
});

test("with migrate: false a schema that is up to date is worked with by a role that may create nothing", async () => {
  const made = await openTest({ database: database.url, schema: "ready" });
  await made.close();
  await db.script(`
    create role plain login;
    grant usage on schema ready to plain;
    grant select, insert, update, delete on all tables in schema ready to plain;
    grant execute on all functions in schema ready to plain;`);
  const url = new URL(database.url);
  url.username = "plain";
  const hf = await openTest({ database: url.href, schema: "ready", migrate: false });
  const kind = makeKind();
  await hf.enqueue(kind, 1);
  expect(await runDue(hf, [kind])).toMatchObject({ done: 1 });
  // Weeks later nobody has made the day's place in the history: it can be made on its behalf, and no other table.
  await moveClock(makeStore(db, "ready"), 21 * 86_400_000);
  await hf.enqueue(kind, 2);
  expect(await runDue(hf, [kind])).toMatchObject({ done: 1 });
  await hf.close();
  await (await openTest({ database: url.href, schema: "ready", migrate: false })).close();
  const plain = await openPostgres({ url: url.href });
  expect(await caught(plain.query("create table ready.mine (n integer)"))).toMatchObject({ code: "42501" });
  await plain.close();
  await db.script("drop owned by plain; drop role plain;");
});

test("a migration that fails leaves nothing behind", async () => {
  await db.script("create schema half; create table half.leases (n integer)");
  expect(await caught(migrate(db, "half"))).toMatchObject({ message: expect.stringContaining("leases") });
  const { rows } = await db.query<{ relname: string }>(
    "select relname from pg_class where relnamespace = 'half'::regnamespace and relkind = 'r'",
  );
  expect(rows).toEqual([{ relname: "leases" }]);
});
