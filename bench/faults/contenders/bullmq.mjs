// BullMQ 6.7.0 on either of its backends.
// - https://docs.bullmq.io/guide/workers/stalled-jobs: lockDuration, stalledInterval, maxStalledCount (left at its default, 1)
// - https://docs.bullmq.io/guide/workers/graceful-shutdown: worker.close(), which waits for its jobs
// - https://docs.bullmq.io/guide/workers/cancelling-jobs: cancelAllJobs() aborts the signals of what still runs after the grace
// - https://docs.bullmq.io/guide/going-to-production: "error" listeners, maxRetriesPerRequest, signals
// - https://docs.bullmq.io/guide/jobs/deduplication: a deduplication id with a ttl is the strongest key it has
// - https://docs.bullmq.io/guide/queues/auto-removal-of-jobs: removeOnComplete { age }
const QUEUE = "work";
export const leaseMs = 5_000;
const THIRTY_DAYS_MS = 30 * 24 * 3_600_000;

/** `Queue` and `Worker` are bound to a backend; `connect(url)` is what that backend takes. */
export function makeBullMQ({ Queue, Worker, connect, connectWorker = connect }) {
  function openQueue(url, keepMs) {
    const queue = new Queue(QUEUE, {
      connection: connect(url),
      defaultJobOptions: {
        attempts: 3,
        backoff: { type: "fixed", delay: 1_000 },
        ...(keepMs === undefined ? {} : { removeOnComplete: { age: Math.ceil(keepMs / 1_000) } }),
      },
    });
    queue.on("error", (error) => console.error(`bullmq: ${error.message}`));
    return queue;
  }

  return {
    leaseMs,
    async openClient(url, { keepMs }) {
      const queue = openQueue(url, keepMs);
      await queue.waitUntilReady();
      return {
        async enqueue(payload, key) {
          const deduplication = { id: key, ttl: THIRTY_DAYS_MS };
          const job = await queue.add("work", payload, key === undefined ? {} : { deduplication });
          return { id: job.id, created: null, isOtherPayloadTold: false };
        },
        // What is old enough goes when the next job is done.
        purge: async () => void (await queue.add("work", { n: -1 })),
        close: () => queue.close(),
      };
    },
    async openWorker(url, { concurrency, graceMs }, handle) {
      const process_ = (job, _token, signal) =>
        handle(job.data, { attempt: job.attemptsMade + 1, stalls: job.stalledCounter ?? 0, signal });
      const worker = new Worker(QUEUE, process_, {
        connection: connectWorker(url),
        concurrency,
        lockDuration: leaseMs,
        stalledInterval: leaseMs,
      });
      worker.on("error", (error) => console.error(`bullmq: ${error.message}`));
      process.once("SIGTERM", async () => {
        setTimeout(() => worker.cancelAllJobs("shutdown"), graceMs);
        await worker.close();
        process.exit(0);
      });
      await worker.waitUntilReady();
    },
    async look(url) {
      const queue = openQueue(url);
      try {
        const jobs = await queue.getJobs(["waiting", "prioritized", "delayed", "active", "completed", "failed"]);
        const states = await Promise.all(jobs.map((job) => job.getState()));
        const names = {
          waiting: "waiting",
          prioritized: "waiting",
          delayed: "waiting",
          active: "running",
          completed: "done",
          failed: "dead",
        };
        return jobs.map((job, index) => ({
          n: job.data.n,
          state: names[states[index]] ?? states[index],
          by: job.returnvalue?.by,
        }));
      } finally {
        await queue.close();
      }
    },
  };
}
