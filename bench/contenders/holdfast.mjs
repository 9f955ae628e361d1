// Holdfast, through its public door only; the counts at the end read its tables.
import { defineJob, open } from "../../dist/index.js";
import pg from "pg";

export async function setup(url, scenario) {
  const hf = await open({ database: url });
  const work = { concurrency: scenario === "latency" ? 10 : 500 };
  let onJob = () => {};
  const kind = defineJob("bench.noop", {
    attempts: 5,
    async run(job) {
      onJob(job.payload);
    },
  });
  let worker;
  return {
    settings: { work },
    enqueueMany: (payloads) =>
      hf.enqueueMany(
        kind,
        payloads.map((payload) => ({ payload })),
      ),
    enqueueOne: (payload) => hf.enqueue(kind, payload),
    async startWorker(handler) {
      onJob = handler;
      worker = await hf.work([kind], work);
    },
    async stop() {
      await worker?.stop();
      await hf.close();
    },
    async counts() {
      const client = new pg.Client(url);
      await client.connect();
      const { rows } = await client.query(
        `select (select count(*)::int from holdfast.jobs) as unfinished,
                (select count(*)::int from holdfast.job_history where state = 'done') as finished`,
      );
      await client.end();
      return rows[0];
    },
  };
}
