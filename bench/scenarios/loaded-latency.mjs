// The same while 2,000 jobs a second flow, of which every hundredth is timed.
import { setTimeout as delay } from "node:timers/promises";
import { percentiles } from "../bench.mjs";

const PER_SECOND = 2_000;
const TICK_MS = 10;
const EACH = 100;

export const tuning = "loaded";

export async function run(bench) {
  await bench.startWorker();
  const sent = new Map();
  const samples = [];
  bench.onStart = (n, atNs) => {
    const from = sent.get(n);
    if (from === undefined) return;
    samples.push(Number(atNs - from) / 1e6);
    sent.delete(n);
  };
  const began = performance.now();
  const until = began + 1_000 + bench.measureMs;
  const calls = [];
  for (let count = 0; performance.now() < until;) {
    const due = ((performance.now() - began) / 1000) * PER_SECOND;
    const others = [];
    for (; count < due; count++) {
      const payload = bench.payload();
      if (payload.n % EACH > 0) {
        others.push(payload);
        continue;
      }
      if (performance.now() - began > 1_000) sent.set(payload.n, process.hrtime.bigint());
      calls.push(bench.contender.enqueueOne(payload));
    }
    if (others.length > 0) calls.push(bench.contender.enqueueMany(others));
    await delay(TICK_MS);
  }
  await Promise.all(calls);
  await bench.drain();
  bench.onStart = undefined;
  return percentiles(samples);
}
