// graphile-worker 0.18.0.
// - https://worker.graphile.org/docs/error-handling: what a killed worker held stays locked for four hours; that is fixed, so
//   the harness moves the lock into the past where a row is about what happens afterwards, and says so
// - https://worker.graphile.org/docs/config: gracefulShutdownAbortTimeout, minResetLockedInterval, maxResetLockedInterval
// - https://worker.graphile.org/docs/job-key: a key is free again when its job is done
// - https://worker.graphile.org/docs/library/run: it handles signals itself; `runner.promise` says when it is over
import { Logger, makeWorkerUtils, run } from "graphile-worker";
import { ask } from "../../contenders/ask.mjs";

export const title = "graphile-worker";
export const leaseMs = 4 * 3_600_000;
/** What is done is not in its table any more. */
export const forgetsDone = true;

const TASK = "work";
const logger = new Logger(() => (level, message) => {
  if (level === "error" || level === "warning") console.error(`graphile-worker: ${message}`);
});

export async function openClient(url) {
  const utils = await makeWorkerUtils({ preset: { worker: { connectionString: url, logger } } });
  await utils.migrate();
  return {
    async enqueue(payload, key) {
      const job = await utils.addJob(TASK, payload, { maxAttempts: 3, ...(key === undefined ? {} : { jobKey: key }) });
      return { id: job.id, created: null, isOtherPayloadTold: false };
    },
    purge: async () => {},
    close: () => utils.release(),
  };
}

export async function openWorker(url, { concurrency, graceMs }, handle) {
  const worker = {
    connectionString: url,
    logger,
    concurrentJobs: concurrency,
    pollInterval: 1_000,
    gracefulShutdownAbortTimeout: graceMs,
    minResetLockedInterval: 1_000,
    maxResetLockedInterval: 1_000,
  };
  const task = async (payload, helpers) => {
    await handle(payload, { attempt: helpers.job.attempts, stalls: 0, signal: helpers.abortSignal });
  };
  const runner = await run({ preset: { worker }, taskList: { [TASK]: task } });
  runner.promise.then(
    () => process.exit(0),
    (error) => {
      console.error(`graphile-worker: ${error.message}`);
      process.exit(1);
    },
  );
}

/** As if five hours had passed. */
export const skipLease = (url) =>
  ask(
    url,
    "update graphile_worker._private_jobs set locked_at = locked_at - interval '5 hours' where locked_at is not null",
  );

export const look = (url) =>
  ask(
    url,
    `select (payload ->> 'n')::int as n, null as by,
            case when locked_by is not null then 'running' when attempts >= max_attempts then 'dead' else 'waiting' end as state
       from graphile_worker._private_jobs`,
  );
