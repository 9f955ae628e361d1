// pg-boss with jobs in every state that can be open; or, later, the job that ran is completed.
import { PgBoss } from "pg-boss";

const [url, what, id] = process.argv.slice(1).filter((each) => each !== "--");
const boss = new PgBoss({ connectionString: url, supervise: false, schedule: false });
boss.on("error", (error) => process.stderr.write(`${error.message}\n`));
await boss.start();
let answer = {};
if (what === "seed") {
  await boss.createQueue("mail.send", { retryLimit: 4 });
  await boss.createQueue("report.build", { policy: "short" });
  await boss.createQueue("ledger.post", { policy: "key_strict_fifo" });
  await boss.createQueue("other");
  await boss.send("other", { stays: true });
  // One that failed once and waits for its next try, one that runs.
  const failed = await boss.send("mail.send", { n: "failed" }, { priority: 50, retryDelay: 600 });
  await boss.fetch("mail.send");
  await boss.fail("mail.send", failed, new Error("mailbox full"));
  const active = await boss.send("mail.send", { n: "active" }, { priority: 40 });
  await boss.fetch("mail.send");
  await boss.send("mail.send", { n: "plain" });
  await boss.send("mail.send", { n: "urgent" }, { priority: 500 });
  await boss.send("mail.send", { n: "later" }, { startAfter: 3600 });
  await boss.send("report.build", { day: 1 }, { singletonKey: "today" });
  const refused = await boss.send("report.build", { day: 2 }, { singletonKey: "today" });
  for (const n of [1, 2, 3]) await boss.send("ledger.post", { n }, { singletonKey: "account-1" });
  for (const n of [4, 5]) await boss.send("ledger.post", { n }, { singletonKey: "account-2" });
  const [running] = await boss.fetch("ledger.post");
  answer = { active, refused, running: running.id, runningData: running.data };
}
if (what === "complete") {
  const [name, job] = id.split("/");
  await boss.complete(name, job);
}
if (what === "take") {
  const jobs = await boss.fetch("mail.send", { batchSize: 10, includeMetadata: true });
  answer = jobs
    .map(({ data, retryCount, priority }) => ({ ...data, retryCount, priority }))
    .sort((a, b) => b.priority - a.priority);
}
process.stdout.write(`${JSON.stringify(answer)}\n`);
await boss.stop({ graceful: false });
