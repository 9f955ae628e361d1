// A worker that has nothing to do: transactions per second, and how soon it starts a job that another process enqueues
// after it has been idle for a while.
import { setTimeout as delay } from "node:timers/promises";
import { databaseWork } from "./database-work.mjs";
import { measure } from "./latency.mjs";

// A connection that is idle tells PostgreSQL's statistics of its last transactions after ten seconds: those of the start would count.
const SETTLE_MS = 15_000;

export const tuning = "latency";

export async function run(bench) {
  const work = await databaseWork(bench.url);
  await bench.startProcess();
  await delay(SETTLE_MS);
  const before = await work.read();
  await delay(bench.measureMs);
  const after = await work.read();
  await work.close();
  const { p50, p99, samples } = await measure(withLength(bench, 6_000), 1_000, 1);
  // Reading counts as one.
  const transactionsPerSecond = ((after.transactions - before.transactions - 1) / bench.measureMs) * 1000;
  return { transactionsPerSecond, p50, p99, samples };
}

/** A spread would copy what its getters answer now. */
function withLength(bench, measureMs) {
  return Object.create(bench, { measureMs: { value: measureMs } });
}
