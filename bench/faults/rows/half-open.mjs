// Every connection of an idle worker is dead, and nobody told it: what it says is taken and goes nowhere, as behind a firewall or a
// load balancer that forgot the connection. New connections work.
import { LIMIT_MS, seconds, sleep } from "../scene.mjs";

export const title = "half-open connections";
export const question = "all connections of a worker are silently dead, new ones work: when does it run jobs again?";

export async function run(scene) {
  const client = await scene.client();
  const { proxy, url } = await scene.proxy();
  const worker = scene.supervised("w", { url, concurrency: 2 });
  for (let n = 0; n < 4; n += 1) await client.enqueue({ n });
  for (let n = 0; n < 4; n += 1) await scene.until("end", (line) => line.n === n);
  await sleep(1_000);
  proxy.halfOpen();
  const brokenAt = Date.now();
  for (let n = 4; n < 8; n += 1) await client.enqueue({ n });
  const first = await scene.until("start", (line) => line.n >= 4, LIMIT_MS);
  return {
    text: first ? `after ${seconds(first.at - brokenAt)}` : `not within ${seconds(LIMIT_MS)}`,
    isClean: first !== undefined && first.at - brokenAt < 30_000 && worker.deaths === 0,
    values: { processDeaths: worker.deaths },
  };
}
