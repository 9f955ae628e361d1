// SIGTERM with two jobs running that take longer than the grace: one listens to its signal, the other does not. A process manager
// that loses its patience after ten seconds, and another worker that could go on.
import { chargesOf, KILL_AFTER_MS, LIMIT_MS, seconds } from "../scene.mjs";

export const title = "SIGTERM";
export const question =
  "SIGTERM, grace 3 s, `kill -9` after 10 s, with a job that heeds its signal and one that does not: charged? when run again?";

export async function run(scene) {
  const client = await scene.client();
  const leaver = await scene.worker("leaver", { concurrency: 2 });
  const ms = { leaver: 90_000, else: 100 };
  await client.enqueue({ n: 0, ms });
  await client.enqueue({ n: 1, ms, stubborn: true });
  for (const n of [0, 1]) await scene.until("start", (line) => line.n === n);
  await scene.worker("heir", { concurrency: 2 });
  leaver.child.kill("SIGTERM");
  const toldAt = Date.now();
  const patience = setTimeout(() => leaver.child.kill("SIGKILL"), KILL_AFTER_MS);
  const ended = leaver.exited.then((exit) => (clearTimeout(patience), exit));
  const inherited = async (limitMs) => {
    const lines = [];
    for (const n of [0, 1]) lines.push(await scene.until("end", (line) => line.n === n && line.by === "heir", limitMs));
    return lines;
  };
  let lines = await inherited(scene.skipLease ? 20_000 : LIMIT_MS);
  const skipped = scene.skipLease !== undefined && lines.includes(undefined);
  if (skipped) {
    await scene.skipLease();
    lines = await inherited(LIMIT_MS);
  }
  const exit = await ended;
  const when = (line) => (line === undefined ? "never" : seconds(line.at - toldAt));
  const charges = [0, 1].map((n) => chargesOf(scene, n));
  const say = (n) => `${skipped && n === 1 ? "4 h (skipped)" : when(lines[n])}${charges[n] > 0 ? ", charged" : ""}`;
  return {
    text: `heeds: ${say(0)}; does not: ${say(1)}; process gone ${seconds(exit.at - toldAt)}${exit.signal === "SIGKILL" ? " (killed)" : ""}`,
    isClean:
      !lines.includes(undefined) &&
      !skipped &&
      charges.every((charge) => charge === 0) &&
      lines.every((line) => line.at - toldAt < KILL_AFTER_MS),
    values: { charges, exit },
  };
}
