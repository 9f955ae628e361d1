// An idle system, one process: from the call of enqueue to the start of the handler, one job at a time.
import { setTimeout as delay } from "node:timers/promises";
import { percentiles } from "../bench.mjs";

const GAP_MS = 20;

export const tuning = "latency";

export async function run(bench) {
  await bench.startWorker();
  return await measure(bench, GAP_MS);
}

export async function measure(bench, gapMs, warmUp = 20) {
  const samples = [];
  const one = async () => {
    const started = new Promise((resolve) => (bench.onStart = (n, atNs) => resolve(atNs)));
    const from = process.hrtime.bigint();
    await bench.contender.enqueueOne(bench.payload());
    samples.push(Number((await started) - from) / 1e6);
    await delay(gapMs);
  };
  await delay(300);
  for (let warm = 0; warm < warmUp; warm++) await one();
  samples.length = 0;
  const end = performance.now() + bench.measureMs;
  while (performance.now() < end) await one();
  bench.onStart = undefined;
  await bench.drain();
  return percentiles(samples);
}
