// Steady work spread over a thousand queues.
import { run as steady } from "./steady.mjs";

const QUEUES = 1_000;

export const tuning = "throughput";

export async function run(bench) {
  bench.contender.spreadOver(QUEUES);
  return await steady(bench);
}
