// The product's own workers, janitors and enqueuers, in one thread, on a clock and a network that a seed decides about.
// SIM_SEED=7 repeats one; many more run in `npm run test:faults` (simulation.faults.ts).
import { afterAll, beforeAll, expect, test } from "vitest";
import { createDatabase, type TestDatabase } from "../../support/database.ts";
import { seedFrom } from "../../support/random.ts";
import { openSimServer, type SimDatabase } from "./database.ts";
import { simulate } from "./simulate.ts";

const SEEDS = Number(process.env["SIM_SEEDS"] ?? 12);
/** One for the file: what is tried again is the same run. */
const FIRST = seedFrom(process.env["SIM_SEED"]);
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
  `${SEEDS} schedules that nobody thought of: nothing is lost, nothing is done twice, all comes to rest`,
  { timeout: 120_000 },
  async () => {
    for (let seed = FIRST; seed < FIRST + SEEDS; seed += 1) {
      const { violations, ...rest } = await simulate(database, seed, START_MS);
      expect(violations, `SIM_SEED=${seed} SIM_SEEDS=1 ${JSON.stringify(rest)}`).toEqual([]);
    }
  },
);

test("the same seed takes the same course", async () => {
  const one = await simulate(database, 4711, START_MS);
  const two = await simulate(database, 4711, START_MS);
  const three = await simulate(database, 4712, START_MS);
  expect(two.hash).toBe(one.hash);
  expect(two.statements).toBe(one.statements);
  expect(three.hash).not.toBe(one.hash);
});
