// Measures a Holdfast that was opened for nothing else: how many jobs a second it takes in and works off, and how soon one
// starts. Every job is counted: what ran twice or never is told.
import { setTimeout as delay } from "node:timers/promises";
import type { Holdfast } from "../client/client.ts";
import { defineJob } from "../job/define-job.ts";

export interface Figure {
  what: string;
  value: number;
  unit: "jobs/s" | "ms";
}

export interface Measured {
  figures: Figure[];
  jobs: number;
  /** Runs beyond the first, and jobs that never ran. */
  wrong: number;
}

interface Payload {
  n: number;
  to: string;
  subject: string;
}

const CALLERS = 128;
const PER_CALL = 1_000;
const AHEAD = 20_000;
const CONCURRENCY = 500;
const SAMPLES = 200;
const PAUSE_MS = 10;
const DRAIN_MS = 120_000;

/** `isOver` is asked between steps and calls: what was measured until then is the answer. */
export async function measure(
  hf: Holdfast,
  seconds: number,
  isOver: () => boolean,
  onStep: (what: string) => void,
): Promise<Measured> {
  const runs: number[] = [];
  let handled = 0;
  let onRun = (_n: number): void => {};
  const kind = defineJob<Payload>("trial.nothing", {
    run({ payload: { n } }) {
      runs[n]! += 1;
      handled += 1;
      onRun(n);
    },
  });
  const payload = (): Payload => {
    const n = runs.push(0) - 1;
    return { n, to: `customer-${n}@example.com`, subject: "Your order has been shipped and is on its way" };
  };
  const many = (): Promise<unknown> =>
    hf.enqueueMany(
      kind,
      Array.from({ length: PER_CALL }, () => ({ payload: payload() })),
    );
  const figures: Figure[] = [];
  const step = async (what: string, run: () => Promise<void>): Promise<void> => {
    if (isOver()) return;
    onStep(what);
    await run();
  };
  /** Jobs per second while `once` is repeated. */
  const rate = (what: string, count: () => number, once: () => Promise<unknown>): Promise<void> =>
    step(what, async () => {
      const [before, began] = [count(), performance.now()];
      while (performance.now() - began < seconds * 1_000 && !isOver()) await once();
      figures.push({ what, value: perSecond(count() - before, began), unit: "jobs/s" });
    });
  const enqueued = (): number => runs.length;
  const drained = async (): Promise<void> => {
    const until = performance.now() + DRAIN_MS;
    while (handled < runs.length && performance.now() < until) await delay(5);
  };

  await many(); // the first calls compile what follows
  await rate("enqueue, one caller", enqueued, () => hf.enqueue(kind, payload()));
  await rate(`enqueue, ${CALLERS} callers`, enqueued, () =>
    Promise.all(Array.from({ length: CALLERS }, () => hf.enqueue(kind, payload()))),
  );
  await rate("enqueueMany, 1,000 a call", enqueued, many);
  const worker = await hf.work([kind], { concurrency: CONCURRENCY });
  await step("work off what waits", async () => {
    const [before, began] = [handled, performance.now()];
    await drained();
    figures.push({ what: "work off what waits", value: perSecond(handled - before, began), unit: "jobs/s" });
  });
  await rate(
    "enqueue and work at once",
    () => handled,
    () => (runs.length - handled > AHEAD - PER_CALL ? delay(1) : many()),
  );
  await drained();
  await step("from enqueue to start, idle", async () => {
    const samples: number[] = [];
    for (let sample = 0; sample < SAMPLES && !isOver(); sample += 1) {
      const began = performance.now();
      const started = new Promise<void>((resolve) => {
        onRun = () => resolve();
      });
      await Promise.all([hf.enqueue(kind, payload()), started.then(() => samples.push(performance.now() - began))]);
      await delay(PAUSE_MS);
    }
    samples.sort((left, right) => left - right);
    for (const percent of [50, 99]) {
      const value = samples[Math.floor((samples.length * percent) / 100)] ?? 0;
      figures.push({ what: `from enqueue to start, idle, p${percent}`, value, unit: "ms" });
    }
  });
  await drained();
  await worker.stop();
  return { figures, jobs: runs.length, wrong: runs.filter((times) => times !== 1).length };
}

const perSecond = (count: number, began: number): number => (count / (performance.now() - began)) * 1_000;
