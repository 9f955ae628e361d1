// A lock that somebody holds for a moment is waited for; one that stays is told as a conflict. Two connections, real locks.
import { afterAll, beforeAll, expect, test } from "vitest";
import { patiently } from "#src/db/patiently.js";
import { createDatabase, type TestDatabase } from "../support/database.ts";
import { openSession, type Session } from "../support/locks.ts";

const PATIENCE = { tries: 3, pauseMs: () => 1 };
let database: TestDatabase;
let holder: Session;
let other: Session;
beforeAll(async () => {
  database = await createDatabase();
  [holder, other] = [await openSession(database.url), await openSession(database.url)];
  await holder.query("create table things (id int primary key)");
  await holder.query("insert into things values (1)");
  await other.query("set lock_timeout = '20ms'");
});
afterAll(async () => {
  await holder.close();
  await other.close();
  await database.drop();
});
const lock = "select id from things where id = 1 for update";

test("a lock that is let go meanwhile is no error", async () => {
  await holder.query("begin");
  await holder.query(lock);
  let tries = 0;
  const { rows } = await patiently("Thing 1", PATIENCE, async () => {
    tries += 1;
    if (tries === PATIENCE.tries) await holder.query("rollback");
    return await other.query(lock);
  });
  expect(rows).toHaveLength(1);
  expect(tries).toBe(PATIENCE.tries);
});

test("a lock that stays is a conflict that says what is locked, after as many tries as were given", async () => {
  await holder.query("begin");
  await holder.query(lock);
  let tries = 0;
  const locked = patiently("Thing 1", PATIENCE, async () => {
    tries += 1;
    return await other.query(lock);
  });
  await expect(locked).rejects.toMatchObject({
    code: "HOLDFAST_STATE_CONFLICT",
    message: "Thing 1 is locked by a transaction that does not end.",
    cause: { code: "55P03" },
  });
  expect(tries).toBe(PATIENCE.tries + 1);
  await holder.query("rollback");
});

test("what is not a lock is told at once", async () => {
  let tries = 0;
  const wrong = patiently("Thing 1", PATIENCE, async () => {
    tries += 1;
    return await other.query("select 1 / 0");
  });
  await expect(wrong).rejects.toMatchObject({ code: "22012" });
  expect(tries).toBe(1);
});
