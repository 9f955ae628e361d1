// Any name Postgres can keep is a schema of its own, however it is spelt; two of them in one database do not meet.
import { Client } from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { migrationSql } from "#src/migrate/migrate.js";
import { runDue, openTest } from "#src/testing/index.js";
import { partsOf } from "#src/testing/open-test.js";
import { assertSound } from "../support/assert-sound.ts";
import { createDatabase, type TestDatabase } from "../support/database.ts";
import { collect, ended } from "../support/events.ts";
import { caught, makeKind } from "../support/make.ts";
import { dropExpiredDays, purgeKeys } from "../support/purge.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await createDatabase();
  const client = new Client({ connectionString: database.url });
  await client.connect();
  await client.query("create table public.y (n integer); insert into public.y values (1)");
  await client.end();
});
afterAll(() => database.drop());

const NAMES = [
  'x"; drop table y; --',
  "x'; drop table y; --",
  "UPPER and lower",
  "select",
  "Große Aufträge 🚚",
  "n".repeat(63),
  "$enqueue$ $q$",
  "$$ $routine$ :schema :quote :leaf \\",
  "new\nline; drop table public.y; --",
  "\"\" '' -- /* */ %s %I $1 a.b",
];

test.each(NAMES)("%j", async (schema) => {
  const hf = await openTest({ database: database.url, schema, poolSize: 3 });
  try {
    const kind = makeKind<number>({
      attempts: 2,
      backoff: ["0s"],
      run: (job) => {
        if (job.payload === 2) throw new Error("no");
        return job.payload;
      },
    });
    const trouble = collect(hf, "trouble");
    const worker = await hf.work([kind], { poll: "1s" });
    const plain = await hf.enqueue(kind, 1);
    const dies = await hf.enqueue(kind, 2, { key: "k", onDead: { kind: "follow.up" } });
    const grouped = await hf.enqueueMany(kind, [
      { payload: 3, group: "g" },
      { payload: 4, group: "g" },
      { payload: 5, coalesce: "c" },
    ]);
    expect(await ended(hf, plain.id)).toMatchObject({ state: "done", result: 1 });
    expect(await ended(hf, dies.id)).toMatchObject({ state: "dead" });
    for (const { id } of grouped) expect(await ended(hf, id)).toMatchObject({ state: "done" });
    await hf.jobs.retry(dies.id);
    expect(await ended(hf, dies.id)).toMatchObject({ state: "dead" });
    await hf.jobs.discard(dies.id);
    await worker.stop();
    const counting =
      "create function :schema.mine() returns bigint language sql as $$ select count(*) from :schema.jobs $$";
    expect(await hf.sql.migrate("mine", [{ name: "001_mine", sql: counting }])).toEqual(["001_mine"]);
    expect((await hf.sql.query("select :schema.mine() as jobs")).rows).toEqual([{ jobs: expect.any(String) }]);
    await hf.clock.advance("40d");
    const { store } = partsOf(hf);
    expect(await dropExpiredDays(store)).toBeGreaterThan(0);
    expect(await hf.jobs.get(plain.id)).toBeUndefined();
    expect(await purgeKeys(store, 10)).toBe(1);
    await assertSound(database.url, schema, { idle: true });
    expect(trouble.events.map(({ where, error }) => [where, error])).toEqual([]);
  } finally {
    await hf.close();
  }
  const client = new Client({ connectionString: database.url });
  await client.connect();
  expect((await client.query("select n from public.y")).rows).toEqual([{ n: 1 }]);
  await client.end();
});

test("a name that Postgres would cut short or keeps for itself is refused before anything is made", async () => {
  for (const schema of ["", "n".repeat(64), "pg_mine", "nul\0"]) {
    expect(await caught(openTest({ database: database.url, schema }))).toMatchObject({
      code: "HOLDFAST_OPTION_INVALID",
    });
    expect(() => migrationSql(schema)).toThrow("cannot name a schema");
  }
});

test("two schemas side by side each have their own jobs, workers and notifications", async () => {
  const [one, other] = await Promise.all([
    openTest({ database: database.url, schema: "side one" }),
    openTest({ database: database.url, schema: "side two" }),
  ]);
  const seen: string[] = [];
  const kind = makeKind<string>({ run: (job) => void seen.push(job.payload) });
  await one.enqueue(kind, "one", { key: "same" });
  const second = await other.enqueue(kind, "other", { key: "same" });
  expect(second.created).toBe(true);
  expect(await runDue(one, [kind])).toMatchObject({ runs: 1, done: 1 });
  expect(seen).toEqual(["one"]);
  expect(await runDue(other, [kind])).toMatchObject({ runs: 1, done: 1 });
  expect(seen).toEqual(["one", "other"]);
  // And the clock of one is not the clock of the other.
  await one.clock.advance("1d");
  expect((await one.clock.now()).getTime() - (await other.clock.now()).getTime()).toBeGreaterThan(86_000_000);
  await Promise.all([one.close(), other.close()]);
});
