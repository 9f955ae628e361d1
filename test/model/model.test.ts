// The store against the model: random commands, in memory, on a clock that only moves when a command moves it.
// MODEL_SEED=… MODEL_PATH=… repeats what a failure printed; MODEL_SHRINK=1 looks for the shortest list of commands.
import { afterAll, beforeAll, test } from "vitest";
import { seedFrom } from "../support/random.ts";
import { checkModel } from "./commands.ts";
import { openSimMemory, type SimDatabase } from "./simulation/database.ts";

const START_MS = Date.UTC(2030, 0, 1, 12);
const RUNS = Number(process.env["MODEL_RUNS"] ?? 12);
/** One for the file: what is tried again is the same run. fast-check names it when something fails. */
const SEED = seedFrom(process.env["MODEL_SEED"]);
let database: SimDatabase;
beforeAll(async () => {
  database = await openSimMemory(START_MS);
});
afterAll(() => database.close());

test(`${RUNS} lists of commands: the store does what the model does`, { timeout: 600_000 }, async () => {
  const path = process.env["MODEL_PATH"];
  await checkModel(database, START_MS, { runs: RUNS, seed: SEED, ...(path === undefined ? {} : { path }) });
});
