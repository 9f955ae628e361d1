// The server crashes under load and is back three seconds later.
import { chargesOf, seconds, sleep } from "../scene.mjs";

export const title = "database crash";
export const question = "its server crashes under load and is back after 3 s: does it go on by itself?";
const DRAIN_MS = 45_000;

export async function run(scene) {
  const client = await scene.client();
  const worker = scene.supervised("w", { concurrency: 5 });
  await client.enqueue({ n: 0 });
  await scene.until("end", ({ n }) => n === 0);
  const acked = [];
  let isOver = false;
  let next = 1;
  const produce = (async () => {
    while (!isOver) {
      const n = next++;
      const { answer } = await client.tryEnqueue({ n, ms: 300 }, undefined, 15_000);
      if (answer) acked.push(n);
      await sleep(60);
    }
  })();
  await sleep(3_000);
  await scene.server.crash();
  await sleep(3_000);
  await scene.server.start();
  const upAt = Date.now();
  const resumed = await scene.until("end", ({ at }) => at > upAt, DRAIN_MS);
  await sleep(4_000);
  isOver = true;
  await produce;
  const end = Date.now() + DRAIN_MS;
  let open;
  do {
    await sleep(300);
    const done = new Set((await scene.look()).filter(({ state }) => state === "done").map(({ n }) => n));
    open = acked.filter((n) => !done.has(n));
  } while (open.length > 0 && Date.now() < end);
  const lost = acked.filter((n) => scene.said("start", n).length === 0);
  const charged = acked.filter((n) => chargesOf(scene, n) > 0).length;
  const twice = acked.filter((n) => scene.said("end", n).length > 1).length;
  const parts = [
    resumed ? `resumed ${seconds(resumed.at - upAt)} after` : `not within ${seconds(DRAIN_MS)}`,
    `process ended ${worker.deaths} times`,
    `lost ${lost.length}`,
    `charged ${charged}`,
  ];
  if (open.length > lost.length) parts.push(`stuck ${open.length - lost.length} after ${seconds(DRAIN_MS)}`);
  return {
    text: `${parts.join(", ")} (of ${acked.length})`,
    isClean: resumed !== undefined && open.length === 0 && charged === 0 && worker.deaths === 0,
    values: { acked: acked.length, lost, open, charged, ranTwice: twice, processDeaths: worker.deaths },
  };
}
