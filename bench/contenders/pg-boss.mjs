// pg-boss 12.35.0. Why each setting: README.md, "Settings".
import { PgBoss } from "pg-boss";
import { ask } from "./ask.mjs";

const QUEUE = "bench";

const WORK = {
  latency: { batchSize: 1, pollingIntervalSeconds: 0.5 },
  loaded: { batchSize: 100, localConcurrency: 2, burstWhenBatchFull: true, pollingIntervalSeconds: 0.5 },
};

export async function setup(url, tuning) {
  const wakes = tuning in WORK;
  const instance = { max: tuning === "enqueue" ? 25 : 10 };
  const work = WORK[tuning] ?? {
    batchSize: 2000,
    localConcurrency: 2,
    burstWhenBatchFull: true,
    pollingIntervalSeconds: 0.5,
  };
  const boss = new PgBoss({ connectionString: url, ...instance });
  boss.on("error", (error) => process.stderr.write(`pg-boss: ${error.message}\n`));
  await boss.start();
  await boss.createQueue(QUEUE);
  let workerId;
  return {
    settings: {
      instance,
      work,
      ...(wakes ? { wakeUp: "notifyWorker() after send(), or useListenNotify between processes" } : {}),
    },
    enqueueMany: (payloads) =>
      boss.insert(
        QUEUE,
        payloads.map((data) => ({ data })),
      ),
    async enqueueOne(payload) {
      await boss.send(QUEUE, payload);
      if (wakes && workerId) boss.notifyWorker(workerId);
    },
    async startWorker(onJob) {
      workerId = await boss.work(QUEUE, work, async (jobs) => {
        for (const job of jobs) onJob(job.data);
      });
    },
    fillHistory: (count) =>
      ask(
        url,
        `insert into pgboss.job (name, data, state, singleton_key, created_on, started_on, completed_on)
         select $2, jsonb_build_object('n', n, 'to', 'customer-' || n || '@example.com'), 'completed', 'old', now(), now(), now()
         from generate_series(1, $1::integer) n`,
        [count, QUEUE],
      ),
    stop: () => boss.stop({ graceful: true, timeout: 20_000 }),
    async counts() {
      const [row] = await ask(
        url,
        `select count(*) filter (where state < 'completed')::int as unfinished,
                count(*) filter (where state = 'completed' and singleton_key is distinct from 'old')::int as finished
           from pgboss.job where name = $1`,
        [QUEUE],
      );
      return row;
    },
  };
}
