// The janitor of several real processes on one database, under load, one of which is killed.
import { afterEach, expect, test } from "vitest";
import { openPostgres } from "#src/db/postgres.js";
import { createDatabase, type TestDatabase } from "../support/database.ts";
import { type Child, killChildren, startChild } from "../support/processes.ts";

let database: TestDatabase;
afterEach(async () => {
  await killChildren();
  await database.drop();
});

const ran = (child: Child, name?: string): number =>
  child.said.filter((said) => said.what === "ran" && (name === undefined || said["name"] === name)).length;

async function until(isTrue: () => boolean, withinMs = 30_000): Promise<void> {
  const deadline = Date.now() + withinMs;
  while (!isTrue()) {
    if (Date.now() > deadline) throw new Error("It did not come true in time.");
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

test("two processes: every chore runs in one at a time, and what one was at is taken over soon after it is killed", async () => {
  database = await createDatabase();
  const config = { url: database.url, chores: 8 };
  const first = await startChild("janitor.mjs", { ...config, name: "first" });
  await first.until("long");
  const second = await startChild("janitor.mjs", { ...config, name: "second" });
  // Both have had turns, many of them.
  await until(() => ran(first) + ran(second) >= 200 && ran(second) > 20 && ran(first) > 20);
  expect(second.said.filter(({ what }) => what === "long")).toEqual([]);
  expect([...first.said, ...second.said].filter(({ what }) => what === "overlap")).toEqual([]);

  first.kill("SIGKILL");
  const killedAt = Date.now();
  await first.exited;
  const taken = await second.until("long");
  // A turn lasts 6 s without a word, and every process looks every 3 s; slack for a busy machine.
  expect(taken.at - killedAt).toBeLessThan(15_000);
  const names = Array.from({ length: 8 }, (_, n) => `busy-${n}`);
  const before = names.map((name) => ran(second, name));
  await until(() => names.every((name, index) => ran(second, name) > before[index]! + 3));
  expect(second.said.filter(({ what }) => what === "overlap")).toEqual([]);

  const db = await openPostgres({ url: database.url, poolSize: 1, statementTimeoutMs: 10_000, onTrouble: () => {} });
  const { rows } = await db.query<{ by: string }>("select distinct run_by as by from holdfast.chore_runs");
  await db.close();
  expect(rows.map(({ by }) => Number(by.split(":").at(-1)))).toEqual(expect.arrayContaining([first.pid, second.pid]));
});

test("a chore that hangs beside eight that do not: the eight go on, and it is tried again", async () => {
  database = await createDatabase();
  const child = await startChild("janitor.mjs", { url: database.url, chores: 8, hang: true, name: "only" });
  await until(() => child.said.filter(({ what }) => what === "hanging").length >= 3);
  const names = Array.from({ length: 8 }, (_, n) => `busy-${n}`);
  await until(() => names.every((name) => ran(child, name) >= 10));
  expect(child.isRunning).toBe(true);
});
