// A worker with long lists: every item is a chunk that takes a moment and appends to `effects`. It says what it saved.
// config: url, name, lease
import { setTimeout as sleep } from "node:timers/promises";
import { defineJob, open } from "../../../dist/index.js";

const config = JSON.parse(process.argv[2]);
const say = (what, fields = {}) => process.stdout.write(`${JSON.stringify({ what, ...fields })}\n`);
// Nobody wants this process any more.
process.stdin
  .on("end", () => process.exit(3))
  .on("error", () => process.exit(3))
  .resume();
process.on("uncaughtException", (error) => {
  process.stderr.write(`uncaught: ${error.stack}\n`);
  process.exit(70);
});
process.on("unhandledRejection", (error) => {
  process.stderr.write(`unhandled: ${error?.stack ?? error}\n`);
  process.exit(71);
});

const steady = defineJob("steady", {
  lease: config.lease,
  backoff: ["200ms"],
  async run(job) {
    const items = Array.from({ length: job.payload.count }, (_, index) => index);
    for await (const chunk of job.chunks("all", items, { size: 1 })) {
      await sleep(job.payload.ms);
      await chunk.save(async (tx) => {
        await tx.query("insert into effects (job, item, attempt) values ($1, $2, $3)", [
          job.id,
          chunk.items[0],
          job.attempt,
        ]);
      });
      say("saved", { job: job.id, item: chunk.items[0] });
    }
    await job.transaction(async (tx) => {
      await tx.query("insert into effects (job, item, attempt) values ($1, -1, $2)", [job.id, job.attempt]);
      await job.complete(tx, { by: config.name });
    });
  },
});

const hf = await open({ database: config.url });
hf.on("trouble", () => say("trouble"));
await hf.work([steady], { concurrency: 4, name: config.name });
say("ready");
