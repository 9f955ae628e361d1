// What is special about the embedded database beside the contract: one session, one process, one thread.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Db, Queryable } from "#src/db/db.js";
import { openEmbedded } from "#src/db/embedded.js";
import { Closed, DatabaseUnavailable, OptionInvalid, TransactionNested } from "#src/errors.js";
import { startChild } from "./children/child.ts";
import { testSeed } from "./children/seed.mjs";

let seed: string;
let db: Db;
beforeAll(async () => {
  seed = await testSeed();
  db = await openEmbedded({ memory: true }, { seed, idleInTransactionTimeoutMs: 300 });
  await db.script("create table log (n int)");
});
afterAll(() => db.close());

const logged = async (): Promise<number[]> =>
  (await db.query<{ n: number }>("select n from log order by n")).rows.map(({ n }) => n);

describe("inside a transaction", () => {
  test.each<[string, (db: Db) => Promise<unknown>]>([
    ["query", (of) => of.query("select 1")],
    ["transaction", (of) => of.transaction(async () => 1)],
    ["script", (of) => of.script("select 1")],
    ["notify", (of) => of.notify("c", "p")],
    ["listen", (of) => of.listen("c", { onMessage: () => {} })],
    ["close", (of) => of.close()],
  ])("%s of the Db is refused at once, and the transaction goes on", async (_, call) => {
    const startedAt = performance.now();
    const value = await db.transaction(async (tx) => {
      await delay(1);
      await expect(call(db)).rejects.toMatchObject({
        code: "HOLDFAST_TRANSACTION_NESTED",
        hint: expect.stringContaining("`tx`"),
      });
      const { rows } = await tx.query<{ n: number }>("select 5 as n");
      return rows[0]?.n;
    });
    expect(value).toBe(5);
    expect(performance.now() - startedAt).toBeLessThan(1_000);
  });

  test("another Db may be used", async () => {
    const other = await openEmbedded({ memory: true }, { seed });
    await db.transaction(async () => {
      expect((await other.query("select 1 as n")).rows).toEqual([{ n: 1 }]);
    });
    await other.close();
  });

  test("work that it started and that outlives it may use the Db afterwards", async () => {
    let later: Promise<unknown> = Promise.resolve();
    await db.transaction(async () => {
      later = delay(50).then(() => db.query("select 1 as n"));
    });
    expect(await later).toMatchObject({ rows: [{ n: 1 }] });
  });

  test("a COMMIT of its own is refused, and what follows does not slip through", async () => {
    const broken = db.transaction(async (tx) => {
      await expect(tx.query("commit")).rejects.toBeInstanceOf(OptionInvalid);
      await expect(tx.query("insert into log values (666)")).rejects.toBeInstanceOf(OptionInvalid);
    });
    await expect(broken).rejects.toBeInstanceOf(OptionInvalid);
    expect(await logged()).not.toContain(666);
  });

  test("silence ends it, and whoever waited goes on", async () => {
    let leaked: Queryable | undefined;
    const silent = db.transaction(async (tx) => {
      leaked = tx;
      await tx.query("insert into log values (667)");
      await new Promise(() => {});
    });
    const waiting = logged();
    await expect(silent).rejects.toMatchObject({
      code: "HOLDFAST_DATABASE_UNAVAILABLE",
      message: expect.stringMatching(/sent nothing for 300ms/),
    });
    expect(await waiting).not.toContain(667);
    await expect(leaked?.query("select 1")).rejects.toBeInstanceOf(DatabaseUnavailable);
  });
});

describe("turns", () => {
  test("are given in order", async () => {
    const order: string[] = [];
    const done = (name: string) => (): number => order.push(name);
    await Promise.all([
      db.query("select pg_sleep(0.05)").then(done("first")),
      db.transaction((tx) => tx.query("select pg_sleep(0.05)")).then(done("transaction")),
      db.query("select 1").then(done("third")),
      db.script("select 1").then(done("script")),
      db.query("select 1").then(done("last")),
    ]);
    expect(order).toEqual(["first", "transaction", "third", "script", "last"]);
  });

  test("that do not come in time fail, and never run", async () => {
    const held = db.transaction(async (tx) => {
      await tx.query("select 1");
      await delay(200);
    });
    const late = db.query("insert into log values (668)", [], { timeoutMs: 50 });
    const inTime = db.query("select 1 as n", [], { timeoutMs: 5_000 });
    await expect(late).rejects.toMatchObject({
      code: "HOLDFAST_DATABASE_UNAVAILABLE",
      message: expect.stringMatching(/had no turn for this call within 50ms/),
    });
    await held;
    expect(await inTime).toMatchObject({ rows: [{ n: 1 }] });
    expect(await logged()).not.toContain(668);
  });

  test("in memory, a statement that goes on after its time delays the next and nothing else", async () => {
    const slow = db.query("insert into log select 7 from pg_sleep(1)", [], { timeoutMs: 100 });
    await expect(slow).rejects.toMatchObject({ message: expect.stringMatching(/did not finish this call within/) });
    expect(await logged()).toContain(7);
  });

  test("a statement that opens a transaction is undone, with those that ran into it", async () => {
    const outcomes = await Promise.allSettled([
      db.query("insert into log values (1)"),
      db.query("begin"),
      db.query("insert into log values (669)"),
    ]);
    expect(outcomes.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "rejected"]);
    await db.query("insert into log values (2)");
    expect(await logged()).toEqual(expect.arrayContaining([1, 2]));
    expect(await logged()).not.toContain(669);
  });

  test("a rolled back transaction does not take single statements along", async () => {
    const calls = Array.from({ length: 100 }, (_, n) =>
      n % 10 === 0
        ? db.transaction(async (tx) => {
            await tx.query("insert into log values (670)");
            throw new Error("no");
          })
        : db.query("insert into log values ($1)", [1_000 + n]),
    );
    const outcomes = await Promise.allSettled(calls);
    expect(outcomes.filter(({ status }) => status === "rejected")).toHaveLength(10);
    const numbers = await logged();
    expect(numbers.filter((n) => n > 1_000)).toHaveLength(90);
    expect(numbers).not.toContain(670);
  });
});

test("more values than the protocol can count are refused", async () => {
  const values = Array.from({ length: 65_536 }, (_, n) => n);
  await expect(db.query("select 1", values)).rejects.toBeInstanceOf(OptionInvalid);
});

test("a value that is nested too deeply is an error of its call, not the end of the engine", async () => {
  const deep = "[".repeat(100_000) + "]".repeat(100_000);
  await expect(db.query("select $1::jsonb", [deep])).rejects.toMatchObject({ code: "54001" });
  const long = `select 1${" + 1".repeat(20_000)}`;
  await expect(db.query(long)).rejects.toMatchObject({ code: "54001" });
  expect(await logged()).toEqual(expect.any(Array));
});

test("closing does not wait for ever", async () => {
  const own = await openEmbedded({ memory: true }, { seed, closeTimeoutMs: 300 });
  const stuck = own.query("select pg_sleep(30)");
  const waiting = own.transaction(async () => 1);
  const refused = Promise.all([
    expect(stuck).rejects.toBeInstanceOf(Closed),
    expect(waiting).rejects.toBeInstanceOf(Closed),
  ]);
  const startedAt = performance.now();
  await own.close();
  expect(performance.now() - startedAt).toBeLessThan(3_000);
  await refused;
});

test("without its thread's file it runs in this thread, and says so", async () => {
  const trouble: Error[] = [];
  const own = await openEmbedded(
    { memory: true },
    { seed, thread: new URL("file:///nowhere/thread.js"), onTrouble: (error) => trouble.push(error) },
  );
  expect(trouble.map(({ message }) => message)).toEqual([expect.stringMatching(/runs in the main thread and blocks/)]);
  const heard: string[] = [];
  await own.listen("news", { onMessage: (payload) => heard.push(payload) });
  await own.transaction((tx) => tx.query("select pg_notify('news', 'one')"));
  expect(heard).toEqual(["one"]);
  await expect(own.transaction(() => own.query("select 1"))).rejects.toBeInstanceOf(TransactionNested);
  await own.close();
});

test("a folder stays open through a statement that had to be ended, and keeps what was committed", async () => {
  const home = await mkdtemp(join(tmpdir(), "holdfast-stuck-"));
  const own = await openEmbedded({ folder: join(home, "data") }, { seed });
  await own.script("create table kept (n int); insert into kept values (1)");
  await expect(own.query("insert into kept select 2 from pg_sleep(60)", [], { timeoutMs: 100 })).rejects.toThrow(
    DatabaseUnavailable,
  );
  expect((await own.query("select n from kept")).rows).toEqual([{ n: 1 }]);
  await own.close();
  await rm(home, { recursive: true, force: true });
});

test("an open Db does not keep the process alive", async () => {
  const child = startChild("use-and-leave.mjs", [seed]);
  expect(await child.ended).toEqual({ code: 0, signal: null });
  expect(child.lines).toEqual(["100000"]);
});
