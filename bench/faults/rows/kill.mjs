// A worker with three running jobs is killed; another one has been there all the time.
import { chargesOf, LIMIT_MS, seconds } from "../scene.mjs";

export const title = "`kill -9`";
export const question =
  "a worker is killed with 3 jobs running, another one is idle: when are they run again, at whose cost?";

export async function run(scene) {
  const client = await scene.client();
  const victim = await scene.worker("victim", { concurrency: 3 });
  const jobs = [0, 1, 2];
  for (const n of jobs) await client.enqueue({ n, ms: { victim: 60_000, else: 100 } });
  for (const n of jobs) await scene.until("start", (line) => line.n === n);
  await scene.worker("heir", { concurrency: 3 });
  victim.child.kill("SIGKILL");
  const killedAt = (await victim.exited).at;
  const inherited = async (limitMs) => {
    const lines = [];
    for (const n of jobs) lines.push(await scene.until("end", (line) => line.n === n && line.by === "heir", limitMs));
    return lines;
  };
  let lines = await inherited(scene.skipLease ? 5_000 : LIMIT_MS);
  const skipped = scene.skipLease !== undefined && lines.includes(undefined);
  if (skipped) {
    await scene.skipLease();
    lines = await inherited(LIMIT_MS);
  }
  const charged = jobs.filter((n) => chargesOf(scene, n) > 0).length;
  const isBack = !lines.includes(undefined);
  const when = skipped
    ? "after 4 h (skipped)"
    : isBack
      ? `after ${seconds(Math.max(...lines.map(({ at }) => at)) - killedAt)}`
      : "not within a minute";
  return {
    text: `all done ${when}, charged ${charged} of 3`,
    isClean: isBack && !skipped && charged === 0,
    values: { charged, stalls: jobs.map((n) => scene.said("start", n).at(-1)?.stalls) },
  };
}
