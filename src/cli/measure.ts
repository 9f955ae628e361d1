// What `holdfast bench` measures, with jobs that do nothing: how fast they go in, how fast they come out, how soon one
// starts. Everything through the public client, as a program would.
import type { Holdfast } from "../client/client.ts";
import { defineJob } from "../job/define-job.ts";
import type { HoldfastEvents } from "../metrics/events.ts";

export interface Measured {
  name: string;
  /** "31200/s", "1.1 ms". */
  figure: string;
  value: number;
  unit: "per second" | "ms";
}

export interface MeasureInput {
  hf: Holdfast;
  jobs: number;
  concurrency: number;
  onStep(what: string): void;
}

const CALLERS = 20;
const SINGLE_MS = 2_000;
const LATENCY_JOBS = 200;
const ROWS = 1_000;

export async function measure({ hf, jobs, concurrency, onStep }: MeasureInput): Promise<Measured[]> {
  const nothing = defineJob("bench.nothing", { run: () => null });
  const found: Measured[] = [];

  onStep(`enqueueing ${jobs} jobs, ${ROWS} at a time`);
  let began = performance.now();
  for (let sent = 0; sent < jobs; sent += ROWS) {
    const rows = Array.from({ length: Math.min(ROWS, jobs - sent) }, (_, n) => ({ payload: { n: sent + n } }));
    await hf.enqueueMany(nothing, rows);
  }
  found.push(perSecond("enqueued in bulk", jobs, performance.now() - began));

  onStep(`running them, ${concurrency} at once`);
  const all = counted(hf, "job.done", jobs);
  began = performance.now();
  const worker = await hf.work([nothing], { concurrency });
  await all;
  found.push(perSecond("run", jobs, performance.now() - began));

  onStep(`enqueueing one by one, ${CALLERS} callers, ${SINGLE_MS / 1_000} seconds`);
  began = performance.now();
  let singles = 0;
  const caller = async (): Promise<void> => {
    while (performance.now() - began < SINGLE_MS) {
      await hf.enqueue(nothing, null);
      singles += 1;
    }
  };
  await Promise.all(Array.from({ length: CALLERS }, caller));
  found.push(perSecond("enqueued one by one, and run", singles, performance.now() - began));

  onStep(`${LATENCY_JOBS} jobs, one after the other`);
  const waits: number[] = [];
  for (let n = 0; n < LATENCY_JOBS; n += 1) {
    const started = counted(hf, "job.claimed", 1);
    const sentAt = performance.now();
    await Promise.all([hf.enqueue(nothing, null), started]);
    waits.push(performance.now() - sentAt);
  }
  await worker.stop();
  const sorted = waits.toSorted((a, b) => a - b);
  for (const [name, part] of [
    ["p50", 0.5],
    ["p99", 0.99],
  ] as const) {
    const value = sorted[Math.floor(part * (sorted.length - 1))]!;
    found.push({ name: `from enqueue to start, ${name}`, figure: `${value.toFixed(1)} ms`, value, unit: "ms" });
  }
  return found;
}

function perSecond(name: string, count: number, ms: number): Measured {
  const value = Math.round((1_000 * count) / ms);
  return { name, figure: `${value}/s`, value, unit: "per second" };
}

function counted(hf: Holdfast, event: keyof HoldfastEvents, count: number): Promise<void> {
  return new Promise((resolve) => {
    let seen = 0;
    const stop = hf.on(event, () => {
      seen += 1;
      if (seen < count) return;
      stop();
      resolve();
    });
  });
}
