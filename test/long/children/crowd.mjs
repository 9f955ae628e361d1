// A worker with very many short jobs, one of which hangs the process while its claim is a light one.
// config: url, name, lease, timeout
import { writeSync } from "node:fs";
import { defineJob } from "../../../dist/index.js";
import { partsOf } from "../../../dist/testing/open-test.js";
import { openTest } from "../../../dist/testing/index.js";

const config = JSON.parse(process.argv[2]);
const say = (what, fields = {}) => writeSync(1, `${JSON.stringify({ what, ...fields })}\n`);
// Nobody wants this process any more.
process.stdin
  .on("end", () => process.exit(3))
  .on("error", () => process.exit(3))
  .resume();

const hf = await openTest({ database: config.url });
const crowd = defineJob("crowd", {
  lease: config.lease,
  timeout: config.timeout,
  attempts: 1,
  async run(job) {
    if (!job.payload.hang) return;
    const { rows } = await partsOf(hf).db.query("select light from holdfast.leases where token = $1", [job.token]);
    say("hangs", { isLight: rows[0]?.light ?? null });
    for (;;);
  },
});
await hf.work([crowd], { concurrency: 200 });
say("ready");
