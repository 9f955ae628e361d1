// A worker with very many short jobs, one of which hangs the process while its claim is a light one: at once, or when all the
// others have been settled.
// config: url, name, lease, timeout, atOnce
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
    // All of them, and not only those of its claim: whatever the process still had in hand would be a suspect as well.
    for (let open = Infinity; open > 1 && !config.atOnce;) {
      const { rows } = await partsOf(hf).db.query("select count(*)::integer as open from holdfast.jobs");
      open = rows[0].open;
    }
    say("hangs");
    for (;;);
  },
});
await hf.work([crowd], { concurrency: 200 });
say("ready");
