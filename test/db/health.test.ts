// For how long the database has answered without interruption: leases of others expire only if it has for as long as they
// last. So what is no trouble of the database must not count, or jobs of a dead worker would stay where they are.
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { watchHealth } from "#src/db/health.js";
import { openPostgres, type PostgresOptions } from "#src/db/postgres.js";
import { DatabaseUnavailable } from "#src/errors.js";
import { makePulses } from "#src/shared/pulse.js";
import { createDatabase, type TestDatabase } from "../support/database.ts";
import { caught, makeGate } from "../support/make.ts";
import { startTcpProxy } from "../support/tcp-proxy.ts";

let database: TestDatabase;
const cleanups: (() => Promise<void>)[] = [];

beforeAll(async () => {
  database = await createDatabase();
});
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
});
afterAll(() => database.drop());

async function watched(options: PostgresOptions = {}) {
  const db = await openPostgres({ url: database.url, closeTimeoutMs: 100, onTrouble: () => {}, ...options });
  cleanups.push(() => db.close());
  return watchHealth(db, makePulses());
}

test("a server that was never away has been seen for ever", async () => {
  const { db, seenForMs } = await watched();
  await db.query("select 1");
  await caught(db.query("select wrong"));
  expect(seenForMs()).toBe(Infinity);
});

test.each(["ECONNREFUSED", "ETIMEDOUT", "ENOTFOUND"])(
  "%s of another service, met inside a transaction, is not the database's",
  async (code) => {
    const { db, seenForMs } = await watched();
    const theirs = Object.assign(new Error("their API is down"), { code });
    const error = await caught(
      db.transaction(async (tx) => {
        await tx.query("select 1");
        throw theirs;
      }),
    );
    expect(error).toBe(theirs);
    expect(seenForMs()).toBe(Infinity);
  },
);

test("neither is a pool that is full", async () => {
  const { db, seenForMs } = await watched({ poolSize: 1, connectTimeoutMs: 100 });
  const gate = makeGate();
  const holding = db.transaction(async () => await gate.opened);
  expect(await caught(db.query("select 1"))).toMatchObject({ message: expect.stringContaining("all 1 are busy") });
  expect(seenForMs()).toBe(Infinity);
  gate.open();
  await holding;
});

test("nor a statement that takes too long while others are answered", async () => {
  const { db, seenForMs } = await watched({ statementTimeoutMs: 300 });
  const slow = caught(db.query("select pg_sleep(5)"));
  for (let asked = 0; asked < 5; asked += 1) await db.query("select 1");
  expect(await slow).toBeInstanceOf(DatabaseUnavailable);
  expect(seenForMs()).toBe(Infinity);
});

test.each(["outside", "inside"])(
  "a connection that the server ends %s a transaction counts from that moment",
  async (where) => {
    const { db, seenForMs } = await watched();
    const ending = "select pg_terminate_backend(pg_backend_pid())";
    const call = where === "outside" ? db.query(ending) : db.transaction(async (tx) => void (await tx.query(ending)));
    expect(await caught(call)).toBeInstanceOf(DatabaseUnavailable);
    expect(seenForMs()).toBeLessThan(60_000);
  },
);

test("a server from which nobody hears counts, though a call before that was answered", async () => {
  const proxy = await startTcpProxy(database.url);
  cleanups.push(() => proxy.close());
  const { db, seenForMs } = await watched({ url: proxy.through(database.url), statementTimeoutMs: 300 });
  await db.query("select 1");
  proxy.pause();
  expect(await caught(db.query("select 1"))).toBeInstanceOf(DatabaseUnavailable);
  expect(seenForMs()).toBeLessThan(60_000);
  proxy.resume();
});
