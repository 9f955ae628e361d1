// A worker process, as a user would write one, with handlers that do what the job's payload says. It says what happens
// as JSON lines and stops cleanly on SIGTERM.
//
// config: url, schema, name, concurrency, lease, timeout, grace, abortGrace, poll, callTimeout
// payload: n
//   ms          how long it takes
//   whileFile   goes on as long as that file is there
//   slowOn      only workers of these names take that long; the others do it at once
//   thenMs      how long it takes once a worker has died of it, or was given up
//   die         "abort" or "kill": the process dies of it
//   failUpTo    fails while its attempt is not greater
//   stubborn    does not listen to its signal
//   spin        blocks the event loop for so many milliseconds
//   trace       "start", "failed" and "end" go to the table `trace`; a stubborn one goes on if that is refused
//   mute        says nothing and returns nothing
//   progress    reports progress under the worker's name before it returns
import { existsSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { defineJob, open } from "../../../dist/index.js";

const config = JSON.parse(process.argv[2]);
const say = (what, fields = {}) => process.stdout.write(`${JSON.stringify({ what, ...fields })}\n`);
// Nobody wants this process any more.
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

// Fenced: a run that lost its lease leaves no trace, however late its statement arrives.
const trace = (what, job) =>
  job.transaction((tx) =>
    tx.query(
      `insert into public.trace (job, token, worker, what, attempt, n, grp) values ($1, $2, $3, $4, $5, $6, $7)`,
      [job.id, job.token, config.name, what, job.attempt, job.payload.n, job.group],
    ),
  );

const work = defineJob("work", {
  lease: config.lease ?? "1s",
  ...(config.timeout ? { timeout: config.timeout } : {}),
  attempts: 3,
  backoff: ["50ms"],
  async run(job) {
    const {
      n,
      ms = 0,
      whileFile,
      slowOn,
      thenMs,
      die,
      failUpTo = 0,
      stubborn,
      spin,
      trace: isTraced,
      progress,
    } = job.payload;
    if (job.payload.mute) return ms > 0 ? sleep(ms).then(() => undefined) : undefined;
    const { signal } = job;
    signal.addEventListener("abort", () =>
      say("aborted", { n, job: job.id, token: job.token, why: signal.reason?.why }),
    );
    say("started", { n, job: job.id, token: job.token, attempt: job.attempt });
    if (isTraced) await trace("start", job);
    if (die === "abort") process.abort();
    if (die === "kill") process.kill(process.pid, "SIGKILL");
    // Nothing else happens in this thread meanwhile, as when it computes, and the processor is left to others.
    if (spin) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, spin);
    const planned = thenMs !== undefined && job.lastError?.reason === "crashed" ? thenMs : ms;
    const takes = slowOn && !slowOn.includes(config.name) ? 0 : planned;
    const pause = (time) => sleep(time, undefined, stubborn ? {} : { signal });
    if (takes > 0) await pause(takes);
    while (whileFile && existsSync(whileFile)) await pause(50);
    if (job.attempt <= failUpTo) {
      if (isTraced) await trace("failed", job);
      throw new Error("as its payload says");
    }
    if (isTraced) {
      await trace("end", job).catch((error) => {
        if (!stubborn) throw error;
        say("refused", { n, job: job.id, token: job.token, code: error.code });
      });
    }
    if (progress) await job.progress(n, n, config.name);
    say("returned", { n, job: job.id, token: job.token });
    return { by: config.name, token: job.token };
  },
});

const hf = await open({
  database: config.url,
  schema: config.schema,
  ...(config.callTimeout ? { callTimeout: config.callTimeout } : {}),
});
for (const name of ["job.done", "job.dead", "job.released", "job.retrying", "lease.lost", "lease.expired"]) {
  hf.on(name, ({ jobId, attempt }) => say(name, { job: jobId, attempt }));
}
hf.on("trouble", ({ where, error }) => say("trouble", { where, message: String(error?.message ?? error) }));
process.on("SIGTERM", () => {
  say("stopping");
  hf.close().then(
    () => {
      say("closed");
      process.exit(0);
    },
    (error) => {
      process.stderr.write(`close failed: ${error.stack}\n`);
      process.exit(72);
    },
  );
});
await hf.work([work], {
  concurrency: config.concurrency ?? 1,
  name: config.name,
  ...(config.poll ? { poll: config.poll } : {}),
  ...(config.grace ? { grace: config.grace } : {}),
  ...(config.abortGrace ? { abortGrace: config.abortGrace } : {}),
});
say("ready");
