// The same with the worker in another process.
import { measure } from "./latency.mjs";

export const tuning = "latency";

export async function run(bench) {
  await bench.startProcess();
  return await measure(bench, 20);
}
