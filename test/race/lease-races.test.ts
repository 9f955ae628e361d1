// A few of the races of lease-races.ts; thousands run in `npm run test:faults`. RACE_SEED repeats a run as far as time allows.
import { afterAll, beforeAll, expect, test } from "vitest";
import { makeRandom, seedFrom } from "../support/random.ts";
import { type Arena, openArena } from "./arena.ts";
import { raceForLeases } from "./lease-races.ts";

/** One for the file: what is tried again is the same run. */
const SEED = seedFrom(process.env["RACE_SEED"]);
let arena: Arena;
beforeAll(async () => {
  arena = await openArena();
});
afterAll(() => arena.close());

test(
  "200 leases run out at the moment at which their runs end: one of the two is heard",
  { timeout: 60_000 },
  async () => {
    const { violations, ...counts } = await raceForLeases(arena.url, makeRandom(SEED), 200);
    expect(violations, `RACE_SEED=${SEED}`).toEqual([]);
    expect(counts.races).toBe(200);
    // Otherwise it was no race.
    expect(Math.min(counts.oldRun, counts.newRun, counts.met)).toBeGreaterThan(10);
  },
);
