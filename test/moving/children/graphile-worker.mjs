// graphile-worker with jobs in every state that can be open; or, later, whatever can be run is run.
import { Logger, makeWorkerUtils, runOnce } from "graphile-worker";

const [url, what] = process.argv.slice(1).filter((each) => each !== "--");
const logger = new Logger(() => () => undefined);
const options = { connectionString: url, logger };
const utils = await makeWorkerUtils(options);
let answer = {};
if (what === "seed") {
  await utils.migrate();
  await utils.addJob("other", { stays: true });
  await utils.addJob("mail.send", { n: "failed" }, { maxAttempts: 5 });
  const fails = async () => {
    throw new Error("mailbox full");
  };
  await runOnce({ ...options, taskList: { "mail.send": fails } });
  await utils.addJob("mail.send", { n: "plain" });
  await utils.addJob("mail.send", { n: "urgent" }, { priority: -500 });
  await utils.addJob("mail.send", { n: "later" }, { runAt: new Date(Date.now() + 3_600_000) });
  await utils.addJob("report.build", { day: 1 }, { jobKey: "today" });
  await utils.addJob("report.build", { day: 2 }, { jobKey: "today" });
  for (const n of [1, 2, 3]) await utils.addJob("ledger.post", { n }, { queueName: "account-1" });
  for (const n of [4, 5]) await utils.addJob("ledger.post", { n }, { queueName: "account-2" });
  // One that runs, and one of a queue: as a worker marks them when it takes them.
  await utils.addJob("mail.send", { n: "active" });
  await utils.withPgClient(async (client) => {
    await client.query(
      "update graphile_worker._private_jobs set run_at = now() + interval '10 minutes' where payload ->> 'n' = 'failed'",
    );
    await client.query(
      `update graphile_worker._private_jobs set locked_at = now(), locked_by = 'w', attempts = 1
       where payload ->> 'n' in ('active', '1')`,
    );
    await client.query(
      "update graphile_worker._private_job_queues set locked_at = now(), locked_by = 'w' where queue_name = 'account-1'",
    );
  });
}
if (what === "unlock") {
  // Job 1 is done, and the other failed.
  await utils.withPgClient(async (client) => {
    await client.query("delete from graphile_worker._private_jobs where payload ->> 'n' = '1'");
    await client.query("update graphile_worker._private_job_queues set locked_at = null, locked_by = null");
    await client.query(
      `update graphile_worker._private_jobs set locked_at = null, locked_by = null, last_error = 'again'
       where payload ->> 'n' = 'active'`,
    );
  });
}
if (what === "run") {
  const ran = [];
  const task = async (payload, { job }) => void ran.push({ ...payload, attempts: job.attempts });
  await runOnce({ ...options, taskList: { "mail.send": task, "report.build": task, "ledger.post": task } });
  answer = ran;
}
process.stdout.write(`${JSON.stringify(answer)}\n`);
await utils.release();
