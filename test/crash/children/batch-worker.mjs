// A worker process for batches. Every tenth item completes inside a transaction that writes a row of its own; some fail once.
//
// config: url, schema, name, concurrency, lease
import { setTimeout as sleep } from "node:timers/promises";
import { defineBatch, open } from "../../../dist/index.js";

const config = JSON.parse(process.argv[2]);
const say = (what, fields = {}) => process.stdout.write(`${JSON.stringify({ what, ...fields })}\n`);
process.stdin
  .on("end", () => process.exit(3))
  .on("error", () => process.exit(3))
  .resume();

const kind = defineBatch("crash.batch", {
  lease: config.lease ?? "1s",
  attempts: 3,
  backoff: ["20ms"],
  outcomes: { saved: {}, duplicate: {} },
  async run(item) {
    const { n, ms = 0, die } = item.payload;
    if (die) process.kill(process.pid, "SIGKILL");
    if (ms > 0) await sleep(ms, undefined, { signal: item.signal });
    if (n % 97 === 0 && item.lastError === null) throw new Error("once");
    if (n % 10 !== 0) return n % 7 === 0 ? "duplicate" : undefined;
    return await item.transaction(async (tx) => {
      // The primary key refuses a second one.
      await tx.query("insert into public.effects (batch, seq) values ($1, $2)", [item.batchId, item.seq]);
      await item.complete(tx, "saved");
    });
  },
});

const hf = await open({ database: config.url, schema: config.schema });
const bad = ["batch.healed", "batch.miscounted"];
for (const event of bad) hf.on(event, (what) => say(event, what));
hf.on("batch.finished", ({ batchId, state }) => say("finished", { batchId, state }));
let hasSaid = false;
hf.on("job.claimed", () => {
  if (!hasSaid) say("started");
  hasSaid = true;
});
await hf.work([kind], { concurrency: config.concurrency ?? 20, grace: "5s" });
process.on("SIGTERM", () => {
  void hf.close().then(() => process.exit(0));
});
say("ready");
