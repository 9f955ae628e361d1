// BullMQ with jobs in every state that can be open; or, later, what is left in Redis.
import { Queue, Worker } from "bullmq";

const [url, what] = process.argv.slice(1).filter((each) => each !== "--");
const { hostname: host, port } = new URL(url);
const connection = { host, port: Number(port), maxRetriesPerRequest: null };
const queue = new Queue("mail", { connection });
let answer = {};
if (what === "seed") {
  await queue.add("mail.send", { n: "failed" }, { attempts: 5, backoff: { type: "fixed", delay: 600_000 } });
  const worker = new Worker("mail", () => Promise.reject(new Error("mailbox full")), { connection });
  await new Promise((resolve) => worker.once("failed", resolve));
  await worker.close();
  await queue.add("mail.send", { n: "plain" });
  await queue.add("mail.send", { n: "second" });
  await queue.add("mail.send", { n: "own id" }, { jobId: "order-42" });
  await queue.add("mail.send", { n: "less urgent" }, { priority: 7 });
  await queue.add("mail.send", { n: "later" }, { delay: 3_600_000 });
  await queue.add("has a space", { n: "left" });
}
if (what === "look") {
  answer = {
    counts: await queue.getJobCounts(),
    jobs: await queue.getJobs(["waiting", "paused", "delayed", "prioritized"]),
  };
  answer.jobs = answer.jobs.map(({ name, data, opts }) => ({ name, data, attempts: opts.attempts }));
  answer.isPaused = await queue.isPaused();
}
process.stdout.write(`${JSON.stringify(answer)}\n`);
await queue.close();
