// One contender, one scenario, one fresh database, one process: prints one JSON line and exits.
//
//   node run-scenario.mjs <contender> <scenario> <database url> <seconds>
//
// A contender exports `setup(url, scenario)`, which makes its schema and resolves to
//   { settings, enqueueMany(payloads), enqueueOne(payload), startWorker(onJob), stop(), counts() }.
// The handler of every contender calls `onJob(payload)` and nothing else.
import { setTimeout as delay } from "node:timers/promises";
import pg from "pg";

const CHUNK = 1_000; // rows per bulk insert
const AHEAD = 20_000; // the producer is at most this far ahead of the handlers
const WARM_UP_MS = 1_500;
const CALLERS = 128;
const GAP_MS = 20;
const DRAIN_MS = 20_000;

const [contenderName, scenario, url, seconds] = process.argv.slice(2);
const measureMs = Number(seconds) * 1000;
const { setup } = await import(`./contenders/${contenderName}.mjs`);
const contender = await setup(url, scenario);

const runs = []; // runs[n]: how often job n was handled
let enqueued = 0;
let handled = 0;
let onStart = () => {};

function payload() {
  const n = enqueued++;
  runs[n] = 0;
  return { n, to: `customer-${n}@example.com`, subject: "Your order has been shipped and is on its way" };
}

function onJob({ n }) {
  onStart();
  runs[n] += 1;
  handled += 1;
}

async function holdSnapshot() {
  const client = new pg.Client(url);
  await client.connect();
  await client.query("begin isolation level repeatable read");
  await client.query("select txid_current()");
  return () => client.end();
}

async function steady({ held }) {
  const release = held ? await holdSnapshot() : async () => {};
  await contender.startWorker(onJob);
  let producing = true;
  const producer = (async () => {
    while (producing) {
      if (enqueued - handled > AHEAD - CHUNK) await delay(1);
      else await contender.enqueueMany(Array.from({ length: CHUNK }, payload));
    }
  })();
  const failed = producer.then(() => new Promise(() => {}));
  await Promise.race([delay(WARM_UP_MS), failed]);

  const marks = [{ at: performance.now(), handled }];
  const cpu = process.cpuUsage();
  const slices = 12; // three thirds of four slices
  for (let slice = 1; slice <= slices; slice++) {
    await Promise.race([delay(Math.max(0, marks[0].at + (measureMs * slice) / slices - performance.now())), failed]);
    marks.push({ at: performance.now(), handled });
  }
  const { user, system } = process.cpuUsage(cpu);
  const rate = (from, to) => ((marks[to].handled - marks[from].handled) / (marks[to].at - marks[from].at)) * 1000;
  producing = false;
  await producer;
  await drain();
  await release();
  return {
    jobsPerSecond: rate(0, slices),
    firstThird: rate(0, 4),
    lastThird: rate(8, 12),
    slices: marks.slice(1).map((_, index) => Math.round(rate(index, index + 1))),
    nodeCpuMicrosPerJob: (user + system) / (marks[slices].handled - marks[0].handled),
  };
}

async function singleEnqueues() {
  const callersFor = (ms) => {
    const end = performance.now() + ms;
    const caller = async () => {
      while (performance.now() < end) await contender.enqueueOne(payload());
    };
    return Promise.all(Array.from({ length: CALLERS }, caller));
  };
  await callersFor(300);
  const before = enqueued;
  const start = performance.now();
  await callersFor(measureMs);
  const enqueuesPerSecond = ((enqueued - before) / (performance.now() - start)) * 1000;
  await contender.startWorker(onJob);
  await drain();
  return { enqueuesPerSecond };
}

async function idleLatency() {
  await contender.startWorker(onJob);
  const samples = [];
  const one = async () => {
    const started = new Promise((resolve) => (onStart = () => resolve(performance.now())));
    const from = performance.now();
    await contender.enqueueOne(payload());
    samples.push(Math.round(((await started) - from) * 1000) / 1000);
    await delay(GAP_MS);
  };
  await delay(300);
  for (let warm = 0; warm < 20; warm++) await one();
  samples.length = 0;
  const end = performance.now() + measureMs;
  while (performance.now() < end) await one();
  onStart = () => {};
  await drain();
  samples.sort((a, b) => a - b);
  const percentile = (p) => samples[Math.min(samples.length - 1, Math.floor(samples.length * p))];
  return { p50: percentile(0.5), p99: percentile(0.99), samples };
}

async function drain() {
  const end = performance.now() + DRAIN_MS;
  while (handled < enqueued && performance.now() < end) await delay(5);
}

async function check() {
  await delay(50); // a second delivery of a handled job would show here
  await contender.stop();
  const { unfinished, finished } = await contender.counts();
  return {
    enqueued,
    missing: runs.filter((times) => times === 0).length,
    duplicates: runs.filter((times) => times > 1).length,
    unfinished,
    finished,
    right: runs.every((times) => times === 1) && unfinished === 0 && (finished === null || finished === enqueued),
  };
}

const scenarios = {
  steady: () => steady({ held: false }),
  held: () => steady({ held: true }),
  enqueue: singleEnqueues,
  latency: idleLatency,
};
const result = await scenarios[scenario]();
const counts = await check();
process.stdout.write(`${JSON.stringify({ result, counts, settings: contender.settings })}\n`);
process.exit(0);
