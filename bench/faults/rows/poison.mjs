// A job that kills its process each time, among twenty that do nothing wrong, in one worker that is started again.
import { chargesOf, sleep } from "../scene.mjs";

export const title = "poison";
export const question = "a job that kills its process each time, among 20 innocents: who pays?";
const INNOCENTS = 20;
const LIMIT_MS = 150_000;

export async function run(scene) {
  const client = await scene.client();
  await client.enqueue({ n: 0, dieAfter: 400 });
  for (let n = 1; n <= INNOCENTS; n += 1) await client.enqueue({ n, ms: 1_500 });
  const worker = scene.supervised("w", { concurrency: 10 });
  const end = Date.now() + LIMIT_MS;
  let deaths = 0;
  for (;;) {
    await sleep(500);
    // Where the lease is four hours, it is over with each death.
    if (scene.skipLease && worker.deaths > deaths) {
      deaths = worker.deaths;
      await scene.skipLease();
    }
    const open = (await scene.look()).filter(({ state }) => state === "waiting" || state === "running");
    if (open.length === 0 || Date.now() > end) break;
  }
  const jobs = await scene.look();
  const innocents = jobs.filter(({ n }) => n > 0);
  const count = (state) => innocents.filter((job) => job.state === state).length;
  const charged = innocents.filter(({ n }) => chargesOf(scene, n) > 0).length;
  const dead = count("dead");
  const open = INNOCENTS - count("done") - dead;
  const poison = jobs.find(({ n }) => n === 0)?.state ?? "gone";
  const skipped = scene.skipLease ? "; its 4 h after each crash skipped" : "";
  return {
    text:
      `poison ${poison} after ${scene.said("start", 0).length} runs; innocents dead ${dead}, charged ${charged}` +
      `${open > 0 ? `, still open ${open}` : ""}${skipped}`,
    isClean: poison === "dead" && dead === 0 && charged === 0 && open === 0,
    values: { innocentsDead: dead, innocentsCharged: charged, open, poison, processDeaths: worker.deaths },
  };
}
