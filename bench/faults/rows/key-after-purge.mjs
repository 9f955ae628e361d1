// A key is used again: while its job is still there, with another payload, and after the job was purged.
import { sleep } from "../scene.mjs";

export const title = "key after purge";
export const question = "the same key again, with another payload and after its job was purged: run again? told?";
const KEEP_MS = 1_000;

export async function run(scene) {
  const client = await scene.client({ keepMs: KEEP_MS });
  await scene.worker("w", { concurrency: 2, keepMs: KEEP_MS });
  const payload = { n: 0, amount: 1 };
  await client.enqueue(payload, "key");
  await scene.until("end", ({ n }) => n === 0);
  await sleep(300);
  await client.enqueue(payload, "key");
  const other = await client.enqueue({ n: 0, amount: 2 }, "key");
  await sleep(2_500);
  const runsBefore = scene.said("start", 0).length;
  let isPurged = false;
  for (let tries = 0; tries < 10 && !isPurged; tries += 1) {
    await client.purge();
    await sleep(1_200);
    isPurged = (await scene.look()).every(({ n, isForgotten }) => n !== 0 || isForgotten);
  }
  await client.enqueue(payload, "key");
  await sleep(3_000);
  const runsAfter = scene.said("start", 0).length;
  const told = other.isOtherPayloadTold ? "told" : "not told";
  return {
    text:
      `before the purge ${runsBefore} run, after it ${runsAfter > runsBefore ? "run again" : "still one job"}; other payload: ${told}` +
      `${isPurged ? "" : " (was not purged)"}`,
    isClean: isPurged && runsBefore === 1 && runsAfter === 1 && other.isOtherPayloadTold,
    values: { isPurged, runsBefore, runsAfter, isOtherPayloadTold: other.isOtherPayloadTold },
  };
}
