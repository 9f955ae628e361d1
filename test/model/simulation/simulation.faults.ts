// Many schedules, on a server for speed. FAULT_LONG=1: as many as one part of the figures has. SIM_SEEDS: how many.
import { afterAll, beforeAll, expect, test } from "vitest";
import { createDatabase, type TestDatabase } from "../../support/database.ts";
import { saveResult } from "../../support/history/save-result.ts";
import { seedFrom } from "../../support/random.ts";
import { openSimServer, type SimDatabase } from "./database.ts";
import { simulate } from "./simulate.ts";

const SEEDS = Number(process.env["SIM_SEEDS"] ?? (process.env["FAULT_LONG"] ? 1_000 : 400));
const SORTS = ["kill", "freeze", "cut off", "stop", "clock", "taken away", "dead job run again", "dead job put away"];
/** What the judge looked at; I10, I12 and I14 are about what simulations do not have. */
const COVERED = ["I1", "I2", "I3", "I4", "I5", "I6", "I7", "I8", "I9", "I11", "I15", "I16", "I17", "I18"];
const START_MS = Date.UTC(2030, 0, 1, 12);
let place: TestDatabase;
let database: SimDatabase;
beforeAll(async () => {
  place = await createDatabase();
  database = await openSimServer(START_MS, place.url);
});
afterAll(async () => {
  await database.close();
  await place.drop();
});

test(
  `${SEEDS} schedules: nothing is lost, nothing is done twice, all comes to rest`,
  { timeout: 3_600_000 },
  async () => {
    const first = seedFrom(process.env["FAULT_SEED"]);
    process.stderr.write(`FAULT_SEED=${first}\n`);
    const startedAt = performance.now();
    const violations: string[] = [];
    const faults: Record<string, number> = {};
    const looked: Record<string, number> = {};
    /** Two seeds may pick the same course: that is one schedule. */
    const courses = new Set<string>();
    const sum = { schedules: 0, statements: 0, simulatedJobs: 0, virtualMinutes: 0, asked: 0, ok: 0 };
    for (let seed = first; seed < first + SEEDS && violations.length === 0; seed += 1) {
      const result = await simulate(database, seed, START_MS);
      for (const violation of result.violations) violations.push(`seed ${seed}: ${violation}`);
      for (const [name, count] of Object.entries(result.faults)) faults[name] = (faults[name] ?? 0) + count;
      for (const [name, count] of Object.entries(result.looked)) looked[name] = (looked[name] ?? 0) + count;
      sum.schedules += 1;
      courses.add(`${result.hash} ${result.statements}`);
      sum.statements += result.statements;
      sum.simulatedJobs += result.counts.jobs;
      sum.asked += result.counts.asked;
      sum.ok += result.counts.ok;
      sum.virtualMinutes += result.virtualMs / 60_000;
    }
    const seconds = Math.round((performance.now() - startedAt) / 1_000);
    // Under a name of their own: nothing real was broken.
    const result = { seconds, ...sum, courses: courses.size, simulatedFaults: faults, looked, violations };
    await saveResult("simulation", first, { ...result, virtualMinutes: Math.round(sum.virtualMinutes) });
    process.stderr.write(`${JSON.stringify({ ...result, looked: undefined })}\n`);
    expect(violations).toEqual([]);
    // Of one schedule all may fail; of many most must not.
    expect(sum.ok).toBeGreaterThan(sum.asked * 0.7);
    // Many without a kill, or without a job, have proved nothing.
    if (SEEDS >= 100) expect(Object.keys(faults)).toEqual(expect.arrayContaining(SORTS));
    if (SEEDS >= 100) expect(Object.keys(looked)).toEqual(expect.arrayContaining(COVERED));
    expect(sum.simulatedJobs).toBeGreaterThan(SEEDS);
  },
);
