// What the embedded database promises about death: of its process at any moment, of its engine, and of its first start.
// HOLDFAST_KILLS=200 kills that often; the default keeps `npm test` short.
import { randomInt } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdtemp, readFile, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { PGlite } from "@electric-sql/pglite";
import { amcheck } from "@electric-sql/pglite/contrib/amcheck";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { openEmbedded } from "#src/db/embedded.js";
import { DatabaseUnavailable } from "#src/errors.js";
import { findDamage } from "../support/damage.ts";
import { saveResult } from "../support/history/save-result.ts";
import { startChild } from "./children/child.ts";
import { testSeed } from "./children/seed.mjs";

const KILLS = Number(process.env["HOLDFAST_KILLS"] ?? 5);
const FIRST_START_KILLS = Number(process.env["HOLDFAST_KILLS"] ?? 4);
/** Most of it is for a busy machine. */
const PER_KILL_MS = 30_000;

let seed: string;
let home: string;
let folder: string;
beforeAll(async () => {
  seed = await testSeed();
}, 4 * PER_KILL_MS);

// What it had, for the figures: only of tests that came to their end.
let commits = 0;
const faults: Record<string, number> = {};
const begunAt = performance.now();
afterAll(async () => {
  const seconds = Math.round((performance.now() - begunAt) / 1_000);
  if (Object.keys(faults).length === 2) await saveResult("embedded", 0, { seconds, commits, faults, violations: [] });
});
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), "holdfast-crash-"));
  folder = join(home, "data");
});
afterEach(() => rm(home, { recursive: true, force: true }));

interface Found {
  entries: number;
  last: number;
  twins: number;
  tally: number;
}

/** The rows are numbered from 1, each commit is one entry, one twin and the tally. */
function expectWhole(found: Found, acknowledged: number): void {
  const { last } = found;
  expect(found).toEqual({ entries: last, last, twins: last, tally: last });
  expect(last).toBeGreaterThanOrEqual(acknowledged);
  // One commit may have been on its way, acknowledged or not.
  expect(last).toBeLessThanOrEqual(acknowledged + 1);
}

test(
  `no acknowledged row is lost in ${KILLS} kills`,
  async () => {
    let acknowledged = 0;
    for (let round = 0; round <= KILLS; round += 1) {
      const child = startChild("commit-rows.mjs", [folder, seed]);
      const said = await child.line("found ");
      const found = JSON.parse(said.slice("found ".length)) as Found;
      expectWhole(found, acknowledged);
      // What was there once stays, also if its acknowledgement was killed and nothing comes after it.
      acknowledged = found.last;
      if (round === KILLS) child.kill("SIGTERM");
      else {
        await delay(randomInt(5, 500));
        child.kill("SIGKILL");
      }
      await child.ended;
      acknowledged = Math.max(acknowledged, ...child.lines.map(Number).filter(Number.isInteger));
    }
    expect(acknowledged).toBeGreaterThan(KILLS);
    const db = await openEmbedded({ folder }, { seed });
    const { rows } = await db.query<Record<string, number>>(`select
      count(*)::int as entries, min(n) as first, max(n) as last,
      count(*) filter (where body <> repeat('row ' || n || ' ', n % 40 + 1))::int as wrong from entry`);
    expect(rows).toEqual([{ entries: acknowledged, first: 1, last: acknowledged, wrong: 0 }]);
    await db.close();
    const checking = await PGlite.create(join(folder, "pgdata"), { extensions: { amcheck } });
    const found = await findDamage({ query: (text, values) => checking.query(text, values) as never });
    await checking.close();
    expect(found).toEqual({ looked: expect.any(Number) as number, damage: [] });
    commits = acknowledged;
    faults["embedded: kill -9"] = KILLS;
  },
  (KILLS + 2) * PER_KILL_MS,
);

test(
  `a first start that is killed leaves a folder that the next one can use, ${FIRST_START_KILLS} times`,
  async () => {
    const startedAt = performance.now();
    const whole = startChild("commit-rows.mjs", [folder, seed]);
    await whole.line("found ");
    const firstStartMs = performance.now() - startedAt;
    whole.kill("SIGKILL");
    await whole.ended;
    // Each start is the next one of the start that was killed before it.
    for (let round = 0; round < FIRST_START_KILLS; round += 1) {
      if (existsSync(join(folder, "pgdata"))) await rm(folder, { recursive: true });
      const child = startChild("commit-rows.mjs", [folder, seed]);
      await delay(randomInt(Math.ceil(firstStartMs)));
      child.kill("SIGKILL");
      expect(await child.ended).toEqual({ code: null, signal: "SIGKILL" });
    }
    const db = await openEmbedded({ folder }, { seed });
    expect((await db.query("select 1 as one")).rows).toEqual([{ one: 1 }]);
    await db.close();
    expect((await readdir(folder)).toSorted()).toEqual([".gitignore", "holdfast.json", "pgdata"]);
    faults["embedded: kill -9 in its first start"] = FIRST_START_KILLS;
  },
  (FIRST_START_KILLS + 2) * PER_KILL_MS,
);

test("SIGTERM ends it properly: nothing to recover", { timeout: 2 * PER_KILL_MS }, async () => {
  const child = startChild("commit-rows.mjs", [folder, seed]);
  await child.line("3");
  child.kill("SIGTERM");
  expect(await child.ended).toEqual({ code: 0, signal: null });
  expect(child.lines.at(-1)).toBe("closed");
  // In pg_control: after identifier, format and catalogue version comes the state; 1 is "shut down".
  const control = await readFile(join(folder, "pgdata", "global", "pg_control"));
  expect(control.readUInt32LE(16)).toBe(1);
});

test.each([
  ["in its thread", undefined],
  ["in this thread", null],
])("an engine that dies %s fails its calls and is replaced", { timeout: 2 * PER_KILL_MS }, async (_, thread) => {
  const trouble: Error[] = [];
  const onTrouble = (error: Error): number => trouble.push(error);
  const db = await openEmbedded({ folder }, { seed, onTrouble, ...(thread === null && { thread }) });
  const heard: string[] = [];
  await db.listen("news", {
    onMessage: (payload) => heard.push(payload),
    onReady: () => heard.push("ready"),
    onDown: () => heard.push("down"),
  });
  await db.script("create table kept (n int); insert into kept values (1)");
  // A FATAL of PostgreSQL ends its process, and here the engine.
  await db.script("set idle_in_transaction_session_timeout = '50ms'");
  const dying = db.transaction(async (tx) => {
    await tx.query("insert into kept values (2)");
    await delay(300);
    await tx.query("select 1");
  });
  await expect(dying).rejects.toBeInstanceOf(DatabaseUnavailable);
  expect((await db.query("select n from kept")).rows).toEqual([{ n: 1 }]);
  await db.notify("news", "hello");
  expect(heard).toEqual(["ready", "down", "ready", "hello"]);
  expect(trouble).toEqual([expect.any(DatabaseUnavailable)]);
  await db.close();
});

test("a database in memory is not replaced by an empty one", { timeout: 2 * PER_KILL_MS }, async () => {
  const db = await openEmbedded({ memory: true }, { seed });
  await db.script("set idle_in_transaction_session_timeout = '50ms'");
  const dying = db.transaction(async (tx) => {
    await tx.query("select 1");
    await delay(300);
    await tx.query("select 1");
  });
  await expect(dying).rejects.toBeInstanceOf(DatabaseUnavailable);
  await expect(db.query("select 1")).rejects.toThrow(/in memory has stopped, and what it held is gone/);
  await db.close();
});
