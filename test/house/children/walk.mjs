// One job from its enqueue to its purge, in a copy of the product whose functions say that they were called. Prints
// the calls in their order, as JSON. Argument: the folder of the copy.
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { setTimeout as delay } from "node:timers/promises";

const [, , folder] = process.argv;
const calls = [];
let isOn = false;
globalThis.walked = (place) => {
  if (isOn && calls.at(-1) !== place) calls.push(place);
};

const { defineJob, open } = await import(pathToFileURL(join(folder, "dist/index.js")).href);
// Longer than its lease, so that it beats.
const nap = defineJob("nap", { lease: "600ms", keepDone: "0s", run: () => delay(1_500) });
const hf = await open({ database: "memory:" });

isOn = true;
// Before there is a worker: one that waits would be handed the job, and there would be no claim.
const { id } = await hf.enqueue(nap, null);
await hf.work([nap]);
await hf.jobs.wait(id, { timeout: "20s" });
for (let tries = 0; tries < 100 && (await hf.jobs.get(id)); tries += 1) {
  await hf.janitor.run("purge-finished");
  await delay(20);
}
process.stdout.write(JSON.stringify({ calls, isPurged: (await hf.jobs.get(id)) === undefined }));
await hf.close();
