// Ten processes that start at once migrate once, and all of them work afterwards.
import { afterAll, beforeAll, expect, test } from "vitest";
import { openPostgres } from "#src/db/postgres.js";
import type { Db } from "#src/db/db.js";
import { latestVersion, migrate } from "#src/migrate/migrate.js";
import { drain, openTest } from "#src/testing/index.js";
import { createDatabase, type TestDatabase } from "../support/database.ts";
import { makeKind } from "../support/make.ts";

let database: TestDatabase;
const opened: Db[] = [];

beforeAll(async () => {
  database = await createDatabase();
});
afterAll(async () => {
  await Promise.all(opened.map((db) => db.close()));
  await database.drop();
});

async function connect(): Promise<Db> {
  const db = await openPostgres({ url: database.url, poolSize: 2 });
  opened.push(db);
  return db;
}

test("ten at once: one of them applies everything, the others find it done", async () => {
  const dbs = await Promise.all(Array.from({ length: 10 }, connect));
  const results = await Promise.all(dbs.map((db) => migrate(db, "ten")));
  expect(results.filter(({ applied }) => applied.length > 0)).toHaveLength(1);
  expect(results.every(({ to }) => to === latestVersion())).toBe(true);
  const { rows } = await dbs[0]!.query<{ version: number }>("select version from ten.migrations order by version");
  expect(rows.map(({ version }) => version)).toEqual(Array.from({ length: latestVersion() }, (_, n) => n + 1));
});

test("a second time changes nothing", async () => {
  const db = await connect();
  expect(await migrate(db, "ten")).toEqual({ from: latestVersion(), to: latestVersion(), applied: [] });
});

test("ten clients opened at once all take and run jobs", async () => {
  const kind = makeKind<number>();
  const clients = await Promise.all(
    Array.from({ length: 10 }, () => openTest({ database: database.url, schema: "clients", poolSize: 2 })),
  );
  await Promise.all(clients.map((hf, n) => hf.enqueue(kind, n)));
  expect(await drain(clients[3]!, [kind], { concurrency: 5 })).toMatchObject({ runs: 10, done: 10 });
  await Promise.all(clients.map((hf) => hf.close()));
});
