// graphile-worker 0.18.0, tuned. Why each setting: README.md, "Settings".
import { Logger, makeWorkerUtils, run } from "graphile-worker";
import pg from "pg";

const TASK = "bench";
const logger = new Logger(() => (level, message) => {
  if (level === "error" || level === "warning") process.stderr.write(`graphile-worker: ${message}\n`);
});

export async function setup(url, scenario) {
  const worker = {
    concurrentJobs: 24,
    maxPoolSize: 25,
    localQueue: { size: scenario === "latency" ? -1 : 2000 },
    completeJobBatchDelay: 0,
    failJobBatchDelay: 0,
  };
  const preset = { worker: { connectionString: url, logger, ...worker } };
  const utils = await makeWorkerUtils({ preset });
  await utils.migrate();
  let runner;
  return {
    settings: { worker },
    enqueueMany: (payloads) => utils.addJobs(payloads.map((payload) => ({ identifier: TASK, payload }))),
    enqueueOne: (payload) => utils.addJob(TASK, payload),
    async startWorker(onJob) {
      runner = await run({ preset, parsedCronItems: [], noHandleSignals: true, taskList: { [TASK]: onJob } });
    },
    async stop() {
      await runner?.stop();
      await utils.release();
    },
    async counts() {
      const client = new pg.Client(url);
      await client.connect();
      const { rows } = await client.query("select count(*)::int as unfinished from graphile_worker._private_jobs");
      await client.end();
      return { unfinished: rows[0].unfinished, finished: null };
    },
  };
}
