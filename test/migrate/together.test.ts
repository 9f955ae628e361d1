// Ten processes that start at once migrate once, and all of them work afterwards.
import { afterAll, beforeAll, expect, test } from "vitest";
import { openPostgres } from "#src/db/postgres.js";
import type { Db } from "#src/db/db.js";
import { latestVersion, migrate } from "#src/migrate/migrate.js";
import { runDue, openTest } from "#src/testing/index.js";
import { createDatabase, type TestDatabase } from "../support/database.ts";
import { openSession, untilBlocks } from "../support/locks.ts";
import { makeKind } from "../support/make.ts";
import { killChildren, spawnChild } from "../support/processes.ts";

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

test("ten processes on a fresh database: all of them start and work, and everything was applied once", async () => {
  const fresh = await createDatabase();
  const [holder, watcher] = [await openSession(fresh.url), await openSession(fresh.url)];
  try {
    // All of them are seen at the door before it is opened.
    await holder.begin();
    await holder.query("select pg_advisory_xact_lock(hashtextextended('holdfast migrate crowd', 0))");
    const children = Array.from({ length: 10 }, (_, n) =>
      spawnChild("../../migrate/children/open.mjs", { name: `process-${n}`, url: fresh.url, schema: "crowd" }),
    );
    await untilBlocks(watcher, holder, 10, 60_000);
    await holder.commit();
    for (const child of children) {
      expect(await child.until("ran", undefined, 60_000)).toMatchObject({ state: "done", result: child.name });
      expect(await child.exited).toEqual({ code: 0, signal: null });
      expect(child.errors).toBe("");
    }
    const { rows } = await watcher.query<{ version: number }>("select version from crowd.migrations order by version");
    expect(rows.map(({ version }) => version)).toEqual(Array.from({ length: latestVersion() }, (_, n) => n + 1));
  } finally {
    await killChildren();
    await Promise.all([holder.close(), watcher.close()]);
    await fresh.drop();
  }
}, 120_000);

test("waits for a table that others use without keeping those away who come meanwhile", async () => {
  const db = await connect();
  await migrate(db, "busy");
  // 019 needs a lock that keeps everybody out; what came after it is applied again with it.
  await db.query("delete from busy.migrations where version >= 19");
  await db.script(`alter table busy.jobs add constraint running_has_token check (true), add constraint dead_is_held check (true),
    add constraint live_states check (true); alter table busy.leases add constraint light_has_lane check (true)`);
  const [holder, passer, watcher] = [
    await openSession(database.url),
    await openSession(database.url),
    await openSession(database.url),
  ];
  try {
    await holder.begin();
    await holder.query("select from busy.jobs");
    const migrated = migrate(db, "busy");
    await untilBlocks(watcher, holder);
    await passer.query("set statement_timeout = '4s'");
    await passer.query("select count(*) from busy.jobs");
    await holder.commit();
    const { from, applied } = await migrated;
    expect([from, applied[0]]).toEqual([18, "019_no_checks_on_hot_tables"]);
  } finally {
    await Promise.all([holder.close(), passer.close(), watcher.close()]);
  }
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
  expect(await runDue(clients[3]!, [kind], { concurrency: 5 })).toMatchObject({ runs: 10, done: 10 });
  await Promise.all(clients.map((hf) => hf.close()));
});
