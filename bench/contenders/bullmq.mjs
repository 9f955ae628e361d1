// BullMQ 6.7.0 on either of its backends. Why each setting: README.md, "Settings".
const QUEUE = "bench";
const CONCURRENCY = { latency: 10, loaded: 50 };

/** `Queue` and `Worker` are bound to a backend; `connection` is what that backend takes. */
export async function setupBullMQ({ Queue, Worker, connection, workerConnection = connection }, tuning) {
  const queue = new Queue(QUEUE, { connection, defaultJobOptions: { removeOnComplete: true, attempts: 5 } });
  await queue.waitUntilReady();
  const work = { concurrency: CONCURRENCY[tuning] ?? 200 };
  let worker;
  return {
    settings: { work, removeOnComplete: true },
    enqueueMany: (payloads) => queue.addBulk(payloads.map((data) => ({ name: "noop", data }))),
    enqueueOne: (payload) => queue.add("noop", payload),
    async startWorker(onJob) {
      worker = new Worker(QUEUE, async (job) => onJob(job.data), { connection: workerConnection, ...work });
      worker.on("error", (error) => process.stderr.write(`bullmq: ${error.message}\n`));
      await worker.waitUntilReady();
    },
    async stop() {
      await worker?.close();
    },
    async counts() {
      const { completed: _, failed: __, ...open } = await queue.getJobCounts();
      await queue.close();
      return { unfinished: Object.values(open).reduce((sum, count) => sum + count, 0), finished: null };
    },
  };
}
