// Database roles with as few rights as their duty needs: what each can do, and what it cannot.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openPostgres } from "#src/db/postgres.js";
import type { Db } from "#src/db/db.js";
import { type Duty, grantsSql } from "#src/migrate/grants.js";
import { ROUTINES, makeStore, type Store } from "#src/store/sql.js";
import { listLeaves } from "#src/store/janitor/history-leaves.js";
import { moveClock } from "#src/store/stats/move-clock.js";
import { runDue, openTest, type TestHoldfast } from "#src/testing/index.js";
import { createDatabase, type TestDatabase } from "../support/database.ts";
import { caught, makeKind } from "../support/make.ts";

const SCHEMA = "kept";
const DENIED = { code: "42501" };

describe("a role that was granted", () => {
  let database: TestDatabase;
  let admin: Db;
  let store: Store;
  const roles: string[] = [];
  const opened: TestHoldfast[] = [];
  const dbs: Db[] = [];

  async function makeRole(stem: string): Promise<{ role: string; url: string }> {
    const role = `${stem} ${database.name}`;
    await admin.script(`create role "${role}" login`);
    roles.push(role);
    const url = new URL(database.url);
    url.username = encodeURIComponent(role);
    return { role, url: url.href };
  }

  async function makeDuty(duty: Duty): Promise<{ hf: TestHoldfast; db: Db }> {
    const { role, url } = await makeRole(duty);
    await owner.script(grantsSql(SCHEMA, role, duty));
    const hf = await openTest({ database: url, schema: SCHEMA, migrate: false });
    opened.push(hf);
    const db = await openPostgres({ url });
    dbs.push(db);
    return { hf, db };
  }

  let owner: Db;
  let work: { hf: TestHoldfast; db: Db };
  let enqueue: { hf: TestHoldfast; db: Db };
  let view: { hf: TestHoldfast; db: Db };
  beforeAll(async () => {
    database = await createDatabase();
    admin = await openPostgres({ url: database.url });
    const { role, url } = await makeRole("owner");
    await admin.script(`grant create on database "${database.name}" to "${role}"`);
    // The owner is no superuser either.
    await (await openTest({ database: url, schema: SCHEMA })).close();
    owner = await openPostgres({ url });
    dbs.push(owner);
    store = makeStore(admin, SCHEMA);
    work = await makeDuty("work");
    enqueue = await makeDuty("enqueue");
    view = await makeDuty("view");
  });
  afterAll(async () => {
    await Promise.all(opened.map((hf) => hf.close()));
    await Promise.all(dbs.map((db) => db.close()));
    for (const role of roles.toReversed()) await admin.script(`drop owned by "${role}" cascade; drop role "${role}"`);
    await admin.close();
    await database.drop();
  });

  test("work: runs jobs of every sort, pauses queues, makes tokens, hands files over", async () => {
    const { hf } = work;
    const kind = makeKind<number>({
      async run(job) {
        await job.progress(1, 2);
        await job.step("once", async () => undefined);
        for await (const chunk of job.chunks("list", [1, 2, 3], { size: 2 })) await chunk.save();
        return job.payload;
      },
    });
    await hf.enqueue(kind, 1, { key: "k" });
    await hf.enqueue(kind, 2, { group: "g" });
    await hf.enqueue(kind, 3, { coalesce: "c" });
    expect(await runDue(hf, [kind])).toMatchObject({ done: 3 });
    const { id } = await hf.enqueue(kind, 4, { delay: "1h" });
    await hf.jobs.cancel(id);
    await hf.queues.pause("mail");
    await hf.queues.resume("mail");
    await hf.tokens.create({ name: "t", role: "viewer" });
    const parcel = await hf.inbox("r").put(Buffer.from("a"), { name: "a.txt" });
    await hf.inbox("r").ack(parcel.id);
  });

  test("work: runs every chore; the days of the history are made and dropped on its behalf", async () => {
    const kind = makeKind({ keepDone: "1h" });
    await work.hf.enqueue(kind, 1);
    await runDue(work.hf, [kind]);
    const before = (await listLeaves(store)).map(({ day }) => day);
    await moveClock(store, 9 * 86_400_000);
    const results = await work.hf.janitor.run();
    expect(results.filter((result) => !result.ran || result.error !== null)).toEqual([]);
    expect(results.find(({ chore }) => chore === "drop-days")).toMatchObject({ rows: { days: before.length } });
    const days = (await listLeaves(store)).map(({ day }) => day);
    expect(days.filter((day) => before.includes(day))).toEqual([]);
    expect(days.length).toBeGreaterThanOrEqual(5);
    await work.hf.enqueue(kind, 2);
    await runDue(work.hf, [kind]);
    await moveClock(store, 9 * 86_400_000 + 2 * 3_600_000);
    // From a day that was made on its behalf.
    expect(await work.hf.janitor.run("purge-finished")).toMatchObject([{ rows: { done: 1 }, error: null }]);
  });

  test("work: cannot change the schema, nor say which version it has, nor drop a day that is not due", async () => {
    const dropDay = ROUTINES.find(({ name }) => name.startsWith("drop_day_"))!.name;
    const today = (await listLeaves(store)).at(-1)!;
    for (const statement of [
      `create table ${SCHEMA}.mine (n integer)`,
      `alter table ${SCHEMA}.jobs add column mine integer`,
      `truncate ${SCHEMA}.jobs`,
      `drop table ${SCHEMA}.${today.name}`,
      `insert into ${SCHEMA}.migrations (version, name, breaking) values (900, 'x', true)`,
      `create or replace function ${SCHEMA}.clock() returns timestamptz language sql as 'select now()'`,
    ]) {
      expect(await caught(work.db.query(statement)), statement).toMatchObject(DENIED);
    }
    expect(await caught(work.db.query(`select ${SCHEMA}.${dropDay}($1)`, [today.day]))).toMatchObject({
      message: expect.stringContaining("not a day to be dropped"),
    });
  });

  test("enqueue: enqueues with keys, groups and coalescing, and looks at jobs; it runs, cancels and deletes none", async () => {
    const { hf, db } = enqueue;
    const kind = makeKind();
    const first = await hf.enqueue(kind, 1, { key: "k" });
    expect(await hf.enqueue(kind, 1, { key: "k" })).toMatchObject({ id: first.id, created: false });
    await hf.enqueue(kind, 2, { group: "g" });
    await hf.enqueue(kind, 3, { group: "g" });
    const open = await hf.enqueue(kind, 4, { coalesce: "c" });
    expect(await hf.enqueue(kind, 5, { coalesce: "c" })).toMatchObject({ id: open.id });
    await hf.enqueueMany(kind, [{ payload: 6 }, { payload: 7 }]);
    for (const more of ["key => 'k'", "group_key => 'g'", "coalesce_key => 'c'"]) {
      await db.query(`select * from ${SCHEMA}.enqueue($1, '1', ${more})`, [kind.kind]);
    }
    expect(await hf.jobs.get(first.id)).toMatchObject({ state: "pending" });
    expect((await hf.jobs.list({ kind: kind.kind })).jobs).toHaveLength(7);
    expect(await caught(hf.work([kind]))).toMatchObject(DENIED);
    expect(await caught(hf.jobs.cancel(first.id))).toMatchObject(DENIED);
    for (const statement of [
      `delete from ${SCHEMA}.jobs`,
      `delete from ${SCHEMA}.job_keys`,
      `select * from ${SCHEMA}.access_tokens`,
      `insert into ${SCHEMA}.job_notes values (gen_random_uuid(), 'step', 'a', '1', now())`,
    ]) {
      expect(await caught(db.query(statement)), statement).toMatchObject(DENIED);
    }
    expect(await runDue(work.hf, [kind])).toMatchObject({ done: 7 });
  });

  test("view: looks at everything but tokens and the audit log, and changes nothing", async () => {
    const { hf, db } = view;
    const kind = makeKind();
    const { id } = await work.hf.enqueue(kind, 1);
    expect(await hf.jobs.get(id)).toMatchObject({ state: "pending" });
    expect((await hf.jobs.list()).jobs.length).toBeGreaterThan(0);
    await Promise.all([hf.queues.list(), hf.stats.runs(), hf.workers.list(), hf.health.check(), hf.inboxes.list()]);
    expect((await hf.janitor.history()).runs.length).toBeGreaterThan(0);
    await hf.janitor.preview();
    expect(await hf.metrics.text()).toContain("holdfast_queue_jobs");
    expect(await caught(hf.enqueue(kind, 1))).toMatchObject(DENIED);
    expect(await caught(hf.jobs.cancel(id))).toMatchObject(DENIED);
    expect(await caught(hf.queues.pause("q"))).toMatchObject(DENIED);
    const dropDay = ROUTINES.find(({ name }) => name.startsWith("drop_day_"))!.name;
    for (const statement of [
      `update ${SCHEMA}.jobs set payload = '1'`,
      `select * from ${SCHEMA}.access_tokens`,
      `select * from ${SCHEMA}.audit`,
      `select * from ${SCHEMA}.secrets`,
      `select ${SCHEMA}.${dropDay}('2020-01-01')`,
    ]) {
      expect(await caught(db.query(statement)), statement).toMatchObject(DENIED);
    }
    await work.hf.jobs.cancel(id);
  });
});
