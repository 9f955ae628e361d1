// What notifications cost those who enqueue: 64 callers that enqueue one job at a time, with a worker elsewhere that listens, in rounds with
// notifications and rounds in which they are not sent. Ends with exit code 1 if those with them are slower by a tenth or more.
//
//   node test/load/notify.mjs [rounds]
//
// Not part of npm test: it takes a minute and measures time.
import { setTimeout as sleep } from "node:timers/promises";
import { defineJob, open } from "../../dist/index.js";
import { PostgresConnection } from "../../dist/db/postgres-connection.js";
import { NOTIFY } from "../../dist/db/postgres-listener.js";
import { startPostgres } from "../support/postgres-server.mjs";

const ROUNDS = Number(process.argv[2] ?? 9);
const ROUND_MS = 3_000;
const CALLERS = 64;

let isSilent = false;
const sent = { true: 0, false: 0 };
const { run } = PostgresConnection.prototype;
PostgresConnection.prototype.run = function runUnlessSilent(text, ...rest) {
  if (text !== NOTIFY) return run.call(this, text, ...rest);
  sent[isSilent] += 1;
  // As if it had been answered.
  return isSilent ? Promise.resolve({ rows: [], rowCount: 1 }) : run.call(this, text, ...rest);
};

const server = await startPostgres();
const hf = await open({ database: server.url() });
const listener = await open({ database: server.url(), migrate: false });
try {
  const job = defineJob("notify.measured", { run: () => undefined });
  // Hears of everything and runs none of it: what is measured is the enqueue.
  await listener.work([defineJob("notify.other", { run: () => undefined })]);
  const round = async (ms) => {
    const until = performance.now() + ms;
    let done = 0;
    const call = async () => {
      for (; performance.now() < until; done += 1) await hf.enqueue(job, { n: done });
    };
    const startedAt = performance.now();
    await Promise.all(Array.from({ length: CALLERS }, call));
    return done / ((performance.now() - startedAt) / 1_000);
  };
  await round(ROUND_MS);
  const ratios = [];
  for (let n = 0; n < ROUNDS; n += 1) {
    const speed = {};
    // Another one begins each time.
    for (const silent of n % 2 === 0 ? [false, true] : [true, false]) {
      isSilent = silent;
      await sleep(200);
      speed[silent] = await round(ROUND_MS);
    }
    ratios.push(speed.false / speed.true);
    process.stdout.write(
      `${Math.round(speed.false)} a second with notifications, ${Math.round(speed.true)} without: ${ratios.at(-1).toFixed(2)}\n`,
    );
  }
  const median = ratios.toSorted((a, b) => a - b)[Math.floor(ratios.length / 2)];
  process.stdout.write(
    `With notifications ${median.toFixed(2)} of the speed without, the median of ${ROUNDS} rounds; ${sent.false} were sent, ${sent.true} were not.\n`,
  );
  if (sent.false === 0 || sent.true === 0) throw new Error("There were no notifications to compare with.");
  process.exitCode = median > 0.9 ? 0 : 1;
} finally {
  await hf.close();
  await listener.close();
  await server.remove();
}
