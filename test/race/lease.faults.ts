// Thousands of races for leases. FAULT_LONG=1: as many as the figures want. FAULT_OUT: where the result goes.
import { afterAll, beforeAll, expect, test } from "vitest";
import { makeRandom, seedFrom } from "../support/random.ts";
import { saveResult } from "../support/history/save-result.ts";
import { type Arena, openArena } from "./arena.ts";
import { raceForLeases } from "./lease-races.ts";

const RACES = process.env["FAULT_LONG"] ? 5_000 : 1_500;
let arena: Arena;
beforeAll(async () => {
  arena = await openArena();
});
afterAll(() => arena.close());

test(`${RACES} leases run out at the moment at which their runs end: one of the two is heard`, async () => {
  const seed = seedFrom(process.env["FAULT_SEED"]);
  process.stderr.write(`FAULT_SEED=${seed}\n`);
  const startedAt = performance.now();
  const result = await raceForLeases(arena.url, makeRandom(seed), RACES);
  const seconds = Math.round((performance.now() - startedAt) / 1_000);
  await saveResult("lease-races", seed, { seconds, ...result });
  process.stderr.write(`${JSON.stringify({ seconds, ...result })}\n`);
  expect(result.violations).toEqual([]);
  expect(Math.min(result.oldRun, result.newRun)).toBeGreaterThan(RACES / 20);
  // The others were over before they could meet, or came too late to.
  expect(result.met).toBeGreaterThan(RACES / 10);
});
