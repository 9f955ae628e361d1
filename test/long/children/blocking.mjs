// A worker whose handlers block or hang. config: url, schema, name, lease, timeout, concurrency, hungHook
// payload, by kind:
//   block   { ms }  computes for so long without letting go of the event loop; nothing: for ever
//           { waitMs }  waits instead
//   wait    { ms }  waits for so long; nothing: until the process dies
//           { blockMs }  lets go of the event loop only after so long
import { setTimeout as sleep } from "node:timers/promises";
import { defineJob, open } from "../../../dist/index.js";

const config = JSON.parse(process.argv[2]);
const say = (what, fields = {}) => process.stdout.write(`${JSON.stringify({ what, ...fields })}\n`);
// Nobody wants this process any more.
process.stdin
  .on("end", () => process.exit(3))
  .on("error", () => process.exit(3))
  .resume();

/** Nothing else happens in this thread meanwhile, as when it computes, and the processor is left to others. */
const blockFor = (ms) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);

const block = defineJob("block", {
  lease: config.lease,
  attempts: config.attempts ?? 5,
  backoff: ["0s"],
  ...(config.timeout ? { timeout: config.timeout } : {}),
  async run(job) {
    say("started", { job: job.id, kind: job.kind });
    if (job.payload?.waitMs) await sleep(job.payload.waitMs, undefined, { signal: job.signal });
    // What was said goes out before nothing goes out any more.
    await sleep(50);
    blockFor(job.payload?.ms ?? Infinity);
    return config.name;
  },
});
const wait = defineJob("wait", {
  lease: config.lease,
  async run(job) {
    say("started", { job: job.id, kind: job.kind });
    await sleep(50);
    if (job.payload?.blockMs) return (blockFor(job.payload.blockMs), config.name);
    await sleep(job.payload?.ms ?? 3_600_000, undefined, { signal: job.signal });
    return config.name;
  },
});

const hf = await open({ database: config.url, ...(config.schema ? { schema: config.schema } : {}) });
for (const name of ["job.done", "job.retrying", "job.dead", "lease.lost", "lease.expired"]) {
  hf.on(name, ({ jobId, attempt }) => say(name, { job: jobId, attempt }));
}
hf.on("trouble", ({ where, error }) => say("trouble", { where, message: String(error?.message ?? error) }));
await hf.work([block, wait], {
  concurrency: config.concurrency ?? 2,
  name: config.name,
  ...(config.hungHook ? { hungHook: config.hungHook } : {}),
});
say("ready");
