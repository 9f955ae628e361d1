// A process that opens Holdfast, makes and runs a job, and says what it found. config: url, schema
import { defineJob, open } from "../../../dist/index.js";

const config = JSON.parse(process.argv[2]);
const say = (what, fields = {}) => process.stdout.write(`${JSON.stringify({ what, ...fields })}\n`);
// Nobody wants this process any more.
process.stdin
  .on("end", () => process.exit(3))
  .on("error", () => process.exit(3))
  .resume();

const hf = await open({ database: config.url, schema: config.schema, poolSize: 3 });
const kind = defineJob(`hello.${config.name}`, { run: () => config.name });
const worker = await hf.work([kind]);
const { id } = await hf.enqueue(kind, null);
const { state, result } = await hf.jobs.wait(id, { timeout: "20s" });
say("ran", { state, result });
await worker.stop();
await hf.close();
process.exit(0);
