// One cell of the table: a fresh database of one contender, its processes, a proxy on the way if the row wants one, and what
// its handlers said.
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { startTcpProxy } from "../../test/support/tcp-proxy.ts";

const script = join(dirname(fileURLToPath(import.meta.url)), "process.mjs");
/** How long a worker may go on with its jobs after SIGTERM, and when a process manager (Docker, for example) loses its patience. */
export const GRACE_MS = 3_000;
export const KILL_AFTER_MS = 10_000;
/** What a job is held up by here is not longer than this. */
export const LIMIT_MS = 60_000;

export async function openScene(contenderName, contender, server) {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-faults-"));
  const log = join(folder, "said.ndjson");
  const url = await server.fresh();
  const children = new Set();
  const closers = [];
  const asked = new Set();
  const errors = [];

  async function startProcess(role, config) {
    const settings = { contender: contenderName, role, url, log, graceMs: GRACE_MS, ...config };
    const child = spawn(process.execPath, [script, JSON.stringify(settings)], {
      stdio: ["ignore", "ignore", "pipe", "ipc"],
    });
    children.add(child);
    child.stderr.setEncoding("utf8");
    child.stderr.on("data", (text) => {
      // What it said, without the places in the code.
      for (const line of text.split("\n")) {
        if (/\w/.test(line) && !/^\s*at |[/\\]node_modules[/\\]|file:/.test(line))
          errors.push(`${config.name}: ${line.slice(0, 300)}`);
      }
      errors.splice(0, errors.length - 60);
    });
    const exited = new Promise((resolve) =>
      child.once("exit", (code, signal) => {
        children.delete(child);
        resolve({ code, signal, at: Date.now() });
      }),
    );
    const ready = new Promise((resolve) => child.on("message", (message) => message.ready && resolve(true)));
    const made = { child, exited, isRunning: () => child.exitCode === null && child.signalCode === null };
    if (config.isSupervised) return { ...made, ready };
    if (!(await Promise.race([ready, exited.then(() => false)])))
      throw new Error(`${config.name} ended before it was ready: ${errors.join("\n")}`);
    return { ...made, ready };
  }

  const scene = {
    url,
    leaseMs: contender.leaseMs,
    /** Where nothing can be done about the lease but wait: what is left of it is skipped. Undefined where it is short. */
    skipLease: contender.skipLease && (() => contender.skipLease(url)),
    server,
    errors,
    worker: (name, config = {}) => startProcess("worker", { name, concurrency: 1, ...config }),
    /** Started again a second after it ended, as a process manager does. */
    supervised(name, config = {}) {
      const kept = { deaths: 0, isOver: false, current: undefined };
      const live = async () => {
        while (!kept.isOver) {
          kept.current = await startProcess("worker", { name, concurrency: 1, ...config, isSupervised: true });
          await kept.current.exited;
          if (kept.isOver) return;
          kept.deaths += 1;
          await sleep(1_000);
        }
      };
      void live();
      closers.push(() => (kept.isOver = true));
      return kept;
    },
    async client(config = {}) {
      const { child } = await startProcess("client", { name: "client", ...config });
      const waiting = new Map();
      let next = 0;
      child.on("message", (message) => {
        waiting.get(message.id)?.(message);
        waiting.delete(message.id);
      });
      /** `{ answer }`, `{ error }`, or `{ isSilent: true }` when nothing came within the time. */
      const ask = (verb, args, limitMs) =>
        new Promise((resolve) => {
          const id = next++;
          const timer = setTimeout(() => resolve({ isSilent: true }), limitMs);
          waiting.set(id, (message) => {
            clearTimeout(timer);
            resolve(message);
          });
          child.send({ id, verb, args });
        });
      return {
        tryEnqueue(payload, key, limitMs = 20_000) {
          asked.add(payload.n);
          return ask("enqueue", [payload, key], limitMs);
        },
        async enqueue(payload, key) {
          asked.add(payload.n);
          const { answer, error, isSilent } = await ask("enqueue", [payload, key], 20_000);
          if (error || isSilent) throw new Error(`enqueue: ${error ?? "no answer"}`);
          return answer;
        },
        async purge() {
          const { error } = await ask("purge", [], 20_000);
          if (error) throw new Error(`purge: ${error}`);
        },
      };
    },
    async proxy() {
      const proxy = await startTcpProxy(url);
      closers.push(() => proxy.close());
      return { proxy, url: proxy.through(url) };
    },
    /** Everything handlers said, oldest first. */
    said(what, n) {
      if (!existsSync(log)) return [];
      return readFileSync(log, "utf8")
        .split("\n")
        .filter((line) => line !== "")
        .map((line) => JSON.parse(line))
        .filter((line) => (what === undefined || line.what === what) && (n === undefined || line.n === n));
    },
    /** The first that matches, waited for; undefined when it did not come. */
    async until(what, matches, limitMs = LIMIT_MS) {
      const end = Date.now() + limitMs;
      for (;;) {
        const found = scene.said(what).find(matches);
        if (found || Date.now() > end) return found;
        await sleep(25);
      }
    },
    /** n → state ("waiting", "running", "done", "dead"), and whose result it has where results are kept. */
    async look() {
      const rows = await contender.look(url);
      const there = new Set(rows.map(({ n }) => n));
      const gone = contender.forgetsDone ? [...asked].filter((n) => !there.has(n)) : [];
      return [...rows, ...gone.map((n) => ({ n, state: "done", isForgotten: true }))].filter(({ n }) => n >= 0);
    },
    async stateOf(n) {
      return (await scene.look()).find((job) => job.n === n)?.state ?? "gone";
    },
    async close() {
      for (const close of closers) await close();
      const ends = [...children].map((child) => new Promise((resolve) => child.once("exit", resolve)));
      for (const child of children) child.kill("SIGKILL");
      await Promise.all(ends);
      rmSync(folder, { recursive: true, force: true });
    },
  };
  return scene;
}

/** What the job was charged by the time of its last run: attempts before that one, and stalls where those are counted apart. */
export function chargesOf(scene, n) {
  const last = scene.said("start", n).at(-1);
  return last === undefined ? 0 : last.attempt - 1 + last.stalls;
}

export const seconds = (ms) => `${(ms / 1_000).toFixed(1)} s`;
export { sleep };
