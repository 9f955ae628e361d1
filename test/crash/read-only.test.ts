// A database that is there and takes no writes: a primary that was demoted, a provider that switches to read-only when the disk is
// full, or the full disk itself. For the jobs it is as good as away.
import { Client } from "pg";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { open } from "#src/index.js";
import { createDatabase, type TestDatabase } from "../support/database.ts";
import { expectAllDone, makeFlag, openScene, type Scene, SCHEMA, work } from "./scene.ts";

const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

let database: TestDatabase;
let scene: Scene;
let admin: Client;
beforeEach(async () => {
  database = await createDatabase();
  scene = await openScene(database.url);
  admin = new Client({ connectionString: database.url });
  await admin.connect();
  await admin.query("set default_transaction_read_only = off");
});
afterEach(async () => {
  await setReadOnly(false);
  await admin.end();
  await scene.close();
  await database.drop();
});

/** For sessions from now on, and there are no others. */
async function setReadOnly(isReadOnly: boolean): Promise<void> {
  const name = new URL(database.url).pathname.slice(1);
  await admin.query(`alter database "${name}" set default_transaction_read_only = ${isReadOnly ? "on" : "off"}`);
  await admin.query(
    "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()",
  );
}

const crashes = async (): Promise<unknown[]> =>
  (await admin.query(`select id from ${SCHEMA}.jobs where hold = 2 or crash_count > 0`)).rows;

describe("the database is read-only for longer than a lease", () => {
  test("what ended meanwhile is done, and was run once", async () => {
    const worker = await scene.worker({ name: "a", concurrency: 8, lease: "3s" });
    const ids = await scene.enqueueMany(Array.from({ length: 8 }, (_, n) => ({ n, ms: 700 })));
    for (const id of ids) await worker.until("started", (said) => said["job"] === id);
    await setReadOnly(true);
    for (const id of ids) await worker.until("returned", (said) => said["job"] === id);
    await sleep(2_800);
    await setReadOnly(false);
    await scene.drained();
    expectAllDone(await scene.ended(), 8);
    expect(worker.said.filter(({ what }) => what === "started")).toHaveLength(8);
    expect(await scene.charged()).toEqual([]);
  }, 60_000);

  test("nobody is suspected of having crashed, and who crashed twice before is not dead", async () => {
    const flag = await makeFlag();
    const id = await scene.enqueue({ n: 0, whileFile: flag.path });
    await scene.sql.query(`update ${SCHEMA}.jobs set hold = 2, crash_count = 2`);
    const alone = await scene.worker({ name: "alone", lease: "1s" });
    await alone.until("started", (said) => said["job"] === id);
    const beside = await scene.worker({ name: "beside", concurrency: 4, lease: "1s" });
    const others = await scene.enqueueMany([1, 2, 3, 4].map((n) => ({ n, whileFile: flag.path })));
    for (const other of others) await beside.until("started", (said) => said["job"] === other);
    await setReadOnly(true);
    for (const worker of [alone, beside]) await worker.until("aborted");
    await sleep(1_200);
    await setReadOnly(false);
    for (const worker of [alone, beside]) await worker.until("job.released");
    await flag.remove();
    await scene.drained();
    expectAllDone(await scene.ended(), 5);
    expect(await crashes()).toEqual([]);
    expect(await scene.charged()).toEqual([]);
    for (const worker of [alone, beside]) {
      expect(worker.said.filter(({ what }) => what === "lease.expired")).toEqual([]);
    }
  }, 60_000);

  test("an enqueue says so", async () => {
    const hf = await open({ database: database.url, schema: SCHEMA });
    try {
      await setReadOnly(true);
      const refused = await hf.enqueue(work, { n: 0 }).catch((error: unknown) => error);
      expect(refused).toMatchObject({ code: "HOLDFAST_DATABASE_UNAVAILABLE" });
      expect((refused as Error).cause).toMatchObject({ message: expect.stringContaining("takes no writes") });
      await setReadOnly(false);
      expect(await hf.enqueue(work, { n: 0 })).toMatchObject({ created: true });
    } finally {
      await hf.close();
    }
  }, 60_000);
});

test.each([
  ["the disk is full", "disk_full"],
  ["statements are cancelled, by a statement_timeout perhaps,", "query_canceled"],
])(
  "%s for a while: what ended meanwhile is done, and was run once",
  async (_what, condition) => {
    const worker = await scene.worker({ name: "a", concurrency: 4, lease: "20s" });
    const ids = await scene.enqueueMany(Array.from({ length: 4 }, (_, n) => ({ n, ms: 300 })));
    for (const id of ids) await worker.until("started", (said) => said["job"] === id);
    await admin.query(`
    create function refuse() returns trigger language plpgsql as $$ begin
      raise exception 'not now' using errcode = '${condition}';
    end $$`);
    await admin.query(
      `create trigger refuse before delete or update on ${SCHEMA}.jobs for each statement execute function refuse()`,
    );
    for (const id of ids) await worker.until("returned", (said) => said["job"] === id);
    await sleep(1_800);
    await admin.query(`drop trigger refuse on ${SCHEMA}.jobs`);
    await scene.drained();
    expectAllDone(await scene.ended(), 4);
    expect(worker.said.filter(({ what }) => what === "started")).toHaveLength(4);
  },
  60_000,
);
