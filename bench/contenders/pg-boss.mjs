// pg-boss 12.35.0. Why each setting: README.md, "Settings".
import { PgBoss } from "pg-boss";
import pg from "pg";

const QUEUE = "bench";

export async function setup(url, scenario) {
  const latency = scenario === "latency";
  const instance = { max: scenario === "enqueue" ? 25 : 10 };
  const work = latency
    ? { batchSize: 1, pollingIntervalSeconds: 0.5 }
    : { batchSize: 2000, localConcurrency: 2, burstWhenBatchFull: true, pollingIntervalSeconds: 0.5 };
  const boss = new PgBoss({ connectionString: url, ...instance });
  boss.on("error", (error) => process.stderr.write(`pg-boss: ${error.message}\n`));
  await boss.start();
  await boss.createQueue(QUEUE);
  let workerId;
  return {
    settings: { instance, work, ...(latency ? { wakeUp: "notifyWorker() after send()" } : {}) },
    enqueueMany: (payloads) =>
      boss.insert(
        QUEUE,
        payloads.map((data) => ({ data })),
      ),
    async enqueueOne(payload) {
      await boss.send(QUEUE, payload);
      if (latency) boss.notifyWorker(workerId);
    },
    async startWorker(onJob) {
      workerId = await boss.work(QUEUE, work, async (jobs) => {
        for (const job of jobs) onJob(job.data);
      });
    },
    stop: () => boss.stop({ graceful: true, timeout: 20_000 }),
    async counts() {
      const client = new pg.Client(url);
      await client.connect();
      const { rows } = await client.query(
        `select count(*) filter (where state < 'completed')::int as unfinished,
                count(*) filter (where state = 'completed')::int as finished
           from pgboss.job where name = $1`,
        [QUEUE],
      );
      await client.end();
      return rows[0];
    },
  };
}
