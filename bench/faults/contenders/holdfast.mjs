// Holdfast, through its public door only.
import { defineJob, open } from "../../../dist/index.js";
import { ask } from "../../contenders/ask.mjs";

export const title = "Holdfast";
/** How soon a dead worker's job can be somebody else's. */
export const leaseMs = 5_000;

const define = (keepMs, run) =>
  defineJob("work", {
    attempts: 3,
    backoff: ["1s"],
    lease: "5s",
    ...(keepMs === undefined ? {} : { keepDone: `${keepMs}ms` }),
    run,
  });

export async function openClient(url, { keepMs }) {
  const hf = await open({ database: url });
  const kind = define(keepMs, () => {});
  return {
    async enqueue(payload, key) {
      const { id, created, conflict } = await hf.enqueue(kind, payload, key === undefined ? {} : { key });
      return { id, created, isOtherPayloadTold: conflict };
    },
    purge: async () => void (await hf.janitor.run()),
    close: () => hf.close(),
  };
}

export async function openWorker(url, { name, concurrency, graceMs, keepMs }, handle) {
  const log = { warn: console.error, error: console.error, info() {}, debug() {} };
  const hf = await open({ database: url, log });
  const kind = define(keepMs, (job) => handle(job.payload, { attempt: job.attempt, stalls: 0, signal: job.signal }));
  const worker = await hf.work([kind], { name, concurrency, grace: `${graceMs}ms`, abortGrace: "1s" });
  process.once("SIGTERM", async () => {
    await worker.stop();
    await hf.close();
    process.exit(0);
  });
}

export const look = (url) =>
  ask(
    url,
    `select (payload ->> 'n')::int as n, case state::text when 'pending' then 'waiting' else state::text end as state, result ->> 'by' as by
       from (select payload, state, null::jsonb as result from holdfast.jobs
             union all select payload, state, result from holdfast.job_history) as job`,
  );
