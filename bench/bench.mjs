// What every scenario needs: numbered jobs, a handler that counts them, workers in this process or in others, and the check
// at the end that each was handled exactly once.
import { spawn } from "node:child_process";
import { dirname, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const CHUNK = 1_000; // rows per bulk insert
const DRAIN_MS = 60_000;

export function makeBench({ contender, contenderName, share, tuning, url, measureMs, variant }) {
  const runs = []; // runs[n]: how often job n was handled
  const workers = [];
  let enqueued = 0;
  let handled = 0;
  let onStart = () => {};

  function handle(n, atNs) {
    onStart(n, atNs);
    runs[n] += 1;
    handled += 1;
  }

  const bench = {
    contender,
    url,
    measureMs,
    variant,
    /** So many for this contender. */
    portion: (count) => Math.ceil(count * share),
    get enqueued() {
      return enqueued;
    },
    get handled() {
      return handled;
    },
    payload() {
      const n = enqueued++;
      runs[n] = 0;
      return { n, to: `customer-${n}@example.com`, subject: "Your order has been shipped and is on its way" };
    },
    /** Called with the job's number and the monotonic time, in nanoseconds, at which its handler began. */
    set onStart(listener) {
      onStart = listener ?? (() => {});
    },
    chunk: (size = CHUNK) => Array.from({ length: size }, () => bench.payload()),
    async enqueue(count) {
      for (let left = count; left > 0; left -= CHUNK) {
        await contender.enqueueMany(bench.chunk(Math.min(left, CHUNK)));
      }
    },
    startWorker: () => contender.startWorker(({ n }) => handle(n, process.hrtime.bigint())),
    /** A worker in a process of its own; resolves when it works. */
    async startProcess() {
      const child = spawn(process.execPath, [join(here, "worker-process.mjs"), contenderName, tuning, url], {
        stdio: ["ignore", "ignore", "inherit", "ipc"],
      });
      workers.push(child);
      await new Promise((resolve, reject) => {
        child.once("exit", (code) => reject(new Error(`a worker process ended with ${code}`)));
        child.on("message", ({ ready, handled: some }) => {
          if (ready) resolve();
          for (const [n, atNs] of some ?? []) handle(n, BigInt(atNs));
        });
      });
    },
    async drain(limitMs = DRAIN_MS) {
      const end = performance.now() + limitMs;
      while (handled < enqueued && performance.now() < end) await delay(5);
    },
    async check(isLeftUndone) {
      await delay(50); // a second delivery of a handled job would show here
      for (const child of workers) {
        child.removeAllListeners("exit");
        const ended = new Promise((resolve) => child.once("exit", resolve));
        child.send("stop");
        await ended;
      }
      await contender.stop();
      const { unfinished, finished } = await contender.counts();
      return {
        enqueued,
        missing: runs.filter((times) => times === 0).length,
        duplicates: runs.filter((times) => times > 1).length,
        unfinished,
        finished,
        right: isLeftUndone
          ? unfinished === enqueued
          : runs.every((times) => times === 1) && unfinished === 0 && (finished === null || finished === enqueued),
      };
    },
  };
  return bench;
}

export function percentiles(samples) {
  const sorted = samples.toSorted((a, b) => a - b);
  const at = (p) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * p))];
  return { p50: at(0.5), p99: at(0.99), samples: sorted.map((ms) => Math.round(ms * 1000) / 1000) };
}
