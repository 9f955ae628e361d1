// A worker process for storms. Its handlers write down what they do twice: unfenced in proof.exec_log, over a connection of
// their own that no fault touches, and fenced in proof.effects, as part of what they do.
//
// config: url (through a proxy), logUrls (direct; the first that takes writes), schema, name, concurrency, lease, callTimeout, poll, grace,
//   leak (something keeps it alive once it is closed)
// payload: see `Asked` in support/history/record.ts, and
//   ms        how long it takes
//   stubborn  does not listen to its signal
//   spin      blocks the event loop for so many milliseconds
//   until     it is put off until then (milliseconds of the machine's clock)
//   die       "kill", "abort", "memory", "loop": ends its process in that way
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { defineBatch, defineJob, Fatal, open, Snooze } from "../../../dist/index.js";

const config = JSON.parse(process.argv[2]);
const say = (what, fields = {}) => process.stdout.write(`${JSON.stringify({ what, ...fields })}\n`);
process.stdin
  .on("end", () => process.exit(3))
  .on("error", () => process.exit(3))
  .resume();
process.on("uncaughtException", (error) => {
  process.stderr.write(`uncaught: ${error.stack}\n`);
  process.exit(70);
});
process.on("unhandledRejection", (error) => {
  process.stderr.write(`unhandled: ${error?.stack ?? error}\n`);
  process.exit(71);
});

// ---- the unfenced log: many rows in one statement, asked again while the database is away

let waiting = [];
let isWriting = false;
let isOver = false;
let log;
async function write() {
  isWriting = true;
  while (waiting.length > 0 && !isOver) {
    const batch = waiting;
    waiting = [];
    while (!isOver) {
      try {
        if (!log) {
          config.logUrls.push(config.logUrls.shift());
          const client = new pg.Client({
            connectionString: config.logUrls.at(-1),
            connectionTimeoutMillis: 2_000,
            query_timeout: 5_000,
          });
          client.on("error", () => {
            if (log === client) log = undefined;
          });
          await client.connect();
          log = client;
          if (isOver) break;
        }
        await log.query(
          `insert into proof.exec_log (job, token, worker, what, item, noted)
           select (e ->> 0)::uuid, e ->> 1, $2, e ->> 2, (e ->> 3)::integer, (e ->> 4)::double precision from jsonb_array_elements($1::jsonb) as e`,
          [JSON.stringify(batch.map((entry) => entry.row)), config.name],
        );
        break;
      } catch {
        log?.end().catch(() => {});
        log = undefined;
        await sleep(100);
      }
    }
    for (const { done } of batch) done();
  }
  isWriting = false;
  if (isOver) leave(log);
}
/** Without a goodbye: over a dead connection that takes for ever. */
const leave = (client) => client?.connection.stream.destroy();
/** A row that was written twice because its answer was lost says the same thing twice. */
const note = (job, what, item = null) =>
  new Promise((done) => {
    if (isOver) return done();
    waiting.push({ row: [job.id, job.token, what, item, Date.now()], done });
    if (!isWriting) void write();
  });

const effect = (tx, job, what, item = 0) =>
  tx.query("insert into proof.effects (job, token, what, item) values ($1, $2, $3, $4)", [
    job.id,
    job.token,
    what,
    item,
  ]);

const HARD = [
  "with a NUL \u0000 in it",
  "a lone \ud800 surrogate",
  "long ".repeat(5_000),
  "'; drop table jobs; --",
  "\u202e\u0007",
];

function end(die) {
  if (die === "abort") process.abort();
  if (die === "kill") process.kill(process.pid, "SIGKILL");
  if (die === "loop") for (;;);
  if (die === "memory") for (const kept = []; ;) kept.push(Array.from({ length: 1e6 }, Math.random));
}

async function run(job) {
  const { n, ms = 0, fail = 0, fatal, effect: what, items = 0, die, stubborn, spin, until = 0 } = job.payload;
  await note(job, "start");
  if (Date.now() < until) {
    await note(job, "snooze");
    throw new Snooze("50ms");
  }
  if (die) end(die);
  if (spin) for (const spun = Date.now() + spin; Date.now() < spun;);
  if (ms > 0) await sleep(ms, undefined, stubborn ? {} : { signal: job.signal });
  if (fatal) throw new Fatal(HARD[n % HARD.length]);
  if (job.attempt <= fail) throw new Error(HARD[n % HARD.length]);
  if (what === "step") await job.step("pay", (tx) => effect(tx, job, "step"));
  if (what === "chunks") {
    const all = Array.from({ length: items }, (_, item) => item);
    for await (const chunk of job.chunks("parts", all, { size: 4 })) {
      await note(job, "chunk", chunk.start);
      if (ms > 0) await sleep(ms / 4, undefined, stubborn ? {} : { signal: job.signal });
      await chunk.save(async (tx) => {
        for (const item of chunk.items) await effect(tx, job, "chunks", item);
      });
    }
  }
  await note(job, "end");
  const result = { by: config.name, token: job.token };
  if (what !== "complete") return result;
  await job.transaction(async (tx) => {
    await effect(tx, job, "complete");
    await job.complete(tx, result);
  });
}

const common = {
  lease: config.lease ?? "1s",
  attempts: 4,
  backoff: ["30ms"],
  ...(config.timeout && { timeout: config.timeout }),
};
const work = defineJob("storm.work", { ...common, run });
// An endless loop is ended by its timeout: nothing else would ever end it.
const loop = defineJob("storm.loop", { ...common, attempts: 2, timeout: "2s", run });
async function runPlain(job) {
  await note(job, "start");
  await note(job, "end");
}
const light = defineJob("storm.light", { ...common, run: runPlain });
// Purged soon after its end: see support/history/facts.ts.
const brief = defineJob("storm.brief", { ...common, keepDone: "15s", run });
const after = defineJob("storm.after", { ...common, run: runPlain });
const afterDeath = defineJob("storm.after-death", { ...common, run: runPlain });
// Says which payload it ran with.
const newest = defineJob("storm.newest", {
  ...common,
  async run(job) {
    const { n, ms } = job.payload;
    await note(job, "start", n);
    await sleep(ms, undefined, { signal: job.signal });
    await note(job, "end", n);
    return { token: job.token };
  },
});
const batch = defineBatch("storm.batch", {
  ...common,
  concurrency: 20,
  outcomes: { saved: {} },
  async run(item) {
    const { ms = 0, fail = 0 } = item.payload;
    if (ms > 0) await sleep(ms, undefined, { signal: item.signal });
    if (item.attempt <= fail) throw new Error("as its payload says");
    await item.transaction(async (tx) => {
      await tx.query("insert into proof.batch_effects (batch, item) values ($1, $2)", [item.batchId, item.seq]);
      await item.complete(tx, "saved");
    });
  },
});

/** What was closed ends by itself: nothing of Holdfast keeps its process alive. What is the storm's own is let go of here. */
function letEnd() {
  isOver = true;
  if (config.leak) setInterval(() => {}, 1_000);
  leave(log);
  process.stdin.removeAllListeners("end").destroy();
  // Counted, and not one long timer: of that, all would be over at once for whoever was frozen meanwhile.
  let left = 50;
  setInterval(() => {
    left -= 1;
    if (left > 0) return;
    process.stderr.write(`closed, and still alive after 5 s: ${process.getActiveResourcesInfo().join(", ")}\n`);
    process.exit(73);
  }, 100).unref();
}

let troubles = 0;
const hf = await open({
  database: config.url,
  schema: config.schema,
  poolSize: config.poolSize ?? 5,
  callTimeout: config.callTimeout ?? "3s",
  purgeEvery: "1s",
});
hf.on("trouble", () => {
  troubles += 1;
});
hf.on("lease.lost", () => say("lost"));
let hasStarted = false;
hf.on("job.claimed", () => {
  if (hasStarted) return;
  hasStarted = true;
  say("started");
});
process.on("SIGTERM", () => {
  hf.close().then(
    () => {
      say("closed", { troubles });
      letEnd();
    },
    (error) => {
      process.stderr.write(`close failed: ${error.stack}\n`);
      process.exit(72);
    },
  );
});
await hf.work([work, loop, light, brief, after, afterDeath, newest, batch], {
  concurrency: config.concurrency ?? 8,
  name: config.name,
  grace: config.grace ?? "200ms",
  abortGrace: "200ms",
  hungHook: new URL("../../long/children/hung-hook.mjs", import.meta.url),
  ...(config.poll ? { poll: config.poll } : {}),
});
say("ready");
if (config.report) {
  setInterval(() => {
    const { heapUsed, rss } = process.memoryUsage();
    say("size", { heapUsed, rss, handles: process.getActiveResourcesInfo().length, troubles });
  }, 5_000).unref();
}
