// Half a million finished jobs are purged while 500 jobs a second flow: how long those wait for their handler, in peace and
// during the purge.
import { setTimeout as delay } from "node:timers/promises";
import { percentiles } from "../bench.mjs";

const FINISHED = 500_000;
const PER_TURN = 5;
const TURN_MS = 10;
const WARM_UP_MS = 2_000;

export const tuning = "loaded";

export async function run(bench) {
  await bench.contender.fillHistory(FINISHED);
  await bench.startWorker();
  const sentAt = [];
  let waits = [];
  bench.onStart = (n) => waits.push(performance.now() - sentAt[n]);
  let flowing = true;
  const flow = (async () => {
    const began = performance.now();
    for (let turn = 1; flowing; turn++) {
      const first = bench.enqueued;
      const payloads = bench.chunk(PER_TURN);
      sentAt.length = first + PER_TURN;
      sentAt.fill(performance.now(), first);
      await bench.contender.enqueueMany(payloads);
      await delay(Math.max(0, began + turn * TURN_MS - performance.now()));
    }
  })();
  const during = async (work) => {
    waits = [];
    const began = performance.now();
    await work();
    const { p50, p99 } = percentiles(waits);
    return { p50, p99, seconds: (performance.now() - began) / 1000 };
  };

  await delay(WARM_UP_MS);
  const peace = await during(() => delay(bench.measureMs));
  await bench.contender.endRetention();
  await delay(WARM_UP_MS);
  const purge = await during(() => bench.contender.purge(FINISHED));
  flowing = false;
  await flow;
  await bench.drain();
  return {
    rowsPerSecond: FINISHED / purge.seconds,
    peaceP99: peace.p99,
    purgeP99: purge.p99,
    share: purge.p99 / peace.p99,
  };
}
