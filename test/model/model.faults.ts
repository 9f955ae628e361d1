// Many lists of commands against the model, on a server for speed.
import { afterAll, beforeAll, test } from "vitest";
import { createDatabase, type TestDatabase } from "../support/database.ts";
import { saveResult } from "../support/history/save-result.ts";
import { seedFrom } from "../support/random.ts";
import { checkModel } from "./commands.ts";
import { openSimServer, type SimDatabase } from "./simulation/database.ts";

const RUNS = Number(process.env["MODEL_RUNS"] ?? (process.env["FAULT_LONG"] ? 2_000 : 400));
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

test(`${RUNS} lists of commands: the store does what the model does`, { timeout: 3_600_000 }, async () => {
  const seed = seedFrom(process.env["FAULT_SEED"]);
  process.stderr.write(`FAULT_SEED=${seed}\n`);
  const startedAt = performance.now();
  await checkModel(database, START_MS, { runs: RUNS, seed, size: 80 });
  const seconds = Math.round((performance.now() - startedAt) / 1_000);
  await saveResult("model", seed, { seconds, modelRuns: RUNS, violations: [] });
});
