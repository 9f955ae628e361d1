// The same with a million finished jobs in the history, for those who keep one.
import { run as steady } from "./steady.mjs";

const FINISHED = 1_000_000;

export const tuning = "throughput";

export async function run(bench) {
  await bench.contender.fillHistory(FINISHED);
  return await steady(bench);
}
