// A process that opens, works some jobs and closes, and then has nothing more to do. Nobody tells it to end.
//
// config: url, schema
import { setTimeout as sleep } from "node:timers/promises";
import { defineJob, open } from "../../../dist/index.js";

const config = JSON.parse(process.argv[2]);
const say = (what, fields = {}) => process.stdout.write(`${JSON.stringify({ what, ...fields })}\n`);

const hf = await open({ database: config.url, schema: config.schema });
// Long enough for some beats.
const kind = defineJob("some.work", { lease: "600ms", run: (job) => sleep(job.payload).then(() => ({ ran: true })) });
await hf.work([kind], { concurrency: 4 });
const jobs = await Promise.all([0, 0, 5, 50, 900, 1_000].map((ms) => hf.enqueue(kind, ms)));
const ended = await Promise.all(jobs.map(({ id }) => hf.jobs.wait(id, { timeout: "20s" })));
say("worked", { states: ended.map((job) => job.state) });
await hf.close();
say("closed", { left: process.getActiveResourcesInfo() });
