// One loop enqueues as fast as it can, at most AHEAD ahead of the handlers; the worker consumes.
import { monitorEventLoopDelay } from "node:perf_hooks";
import { setTimeout as delay } from "node:timers/promises";
import { databaseWork } from "./database-work.mjs";

const CHUNK = 1_000;
const AHEAD = 20_000;
// A worker lives for days: the seconds in which Node compiles what it runs are not the steady state of any contender.
const WARM_UP_MS = 3_000;
const SLICES = 12; // three thirds of four slices

export const tuning = "throughput";

export async function run(bench) {
  const work = await databaseWork(bench.url);
  await bench.startWorker();
  const [ahead, chunk] = [bench.portion(AHEAD), bench.portion(CHUNK)];
  let producing = true;
  const producer = (async () => {
    while (producing) {
      if (bench.enqueued - bench.handled > ahead - chunk) await delay(1);
      else await bench.contender.enqueueMany(bench.chunk(chunk));
    }
  })();
  const failed = producer.then(() => new Promise(() => {}));
  await Promise.race([delay(WARM_UP_MS), failed]);

  const before = await work?.read();
  const loopDelay = monitorEventLoopDelay({ resolution: 5 });
  loopDelay.enable();
  const marks = [{ at: performance.now(), handled: bench.handled }];
  const cpu = process.cpuUsage();
  for (let slice = 1; slice <= SLICES; slice++) {
    const at = marks[0].at + (bench.measureMs * slice) / SLICES;
    await Promise.race([delay(Math.max(0, at - performance.now())), failed]);
    marks.push({ at: performance.now(), handled: bench.handled });
  }
  const { user, system } = process.cpuUsage(cpu);
  loopDelay.disable();
  const after = await work?.read();
  const jobs = marks[SLICES].handled - marks[0].handled;
  const rate = (from, to) => ((marks[to].handled - marks[from].handled) / (marks[to].at - marks[from].at)) * 1000;
  producing = false;
  await producer;
  await bench.drain();
  await work?.close();
  return {
    jobsPerSecond: rate(0, SLICES),
    firstThird: rate(0, 4),
    lastThird: rate(8, 12),
    slices: marks.slice(1).map((_, index) => Math.round(rate(index, index + 1))),
    nodeCpuMicrosPerJob: (user + system) / jobs,
    loopDelayP99: loopDelay.percentile(99) / 1e6,
    ...(work
      ? {
          walBytesPerJob: (after.walBytes - before.walBytes) / jobs,
          transactionsPerJob: (after.transactions - before.transactions) / jobs,
        }
      : {}),
  };
}
