// A handler that computes for three leases without giving the event loop back, and a second worker that is idle.
import { sleep } from "../scene.mjs";

export const title = "blocked event loop";
export const question =
  "a handler computes for 3 leases without a pause, another worker is idle: how often is it run, how does it end?";
/** It would take too many processors for the others. */
export const isAlone = true;

export async function run(scene) {
  // Four hours are longer than anybody computes: there, any time will do.
  const spin = Math.min(scene.leaseMs * 3, 30_000);
  const client = await scene.client();
  await scene.worker("a");
  await scene.worker("b");
  await client.enqueue({ n: 0, spin });
  const end = Date.now() + 4 * spin + 20_000;
  let state;
  do {
    await sleep(500);
    state = await scene.stateOf(0);
  } while (state !== "done" && state !== "dead" && Date.now() < end);
  // Done means nothing as long as somebody still runs it.
  await sleep(1_000);
  const runs = scene.said("start", 0).length;
  const lease = scene.skipLease ? " (its lease of 4 h was not over)" : "";
  return {
    text: `run ${runs} times, ends ${state}${lease}`,
    isClean: runs === 1 && state === "done",
    values: { spin },
  };
}
