// graphile-worker 0.18.0, tuned. Why each setting: README.md, "Settings".
import { Logger, makeWorkerUtils, run } from "graphile-worker";
import { ask } from "./ask.mjs";

const TASK = "bench";
const logger = new Logger(() => (level, message) => {
  if (level === "error" || level === "warning") process.stderr.write(`graphile-worker: ${message}\n`);
});

export async function setup(url, tuning, asItComes = false) {
  const isQuick = tuning === "latency" || tuning === "loaded";
  const tuned = {
    concurrentJobs: 24,
    maxPoolSize: 25,
    localQueue: { size: isQuick ? -1 : 2000 },
    completeJobBatchDelay: 0,
    failJobBatchDelay: 0,
  };
  const worker = asItComes ? {} : tuned;
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
      const [row] = await ask(url, "select count(*)::int as unfinished from graphile_worker._private_jobs");
      return { unfinished: row.unfinished, finished: null };
    },
  };
}
