// Two workers are frozen (SIGSTOP) until others run their jobs, and thawed: one ends its job well, the other badly. Neither has
// anything to say about it any more.
import { LIMIT_MS, seconds, sleep } from "../scene.mjs";

export const title = "zombie completion";
export const question = "a worker frozen past its lease ends its job while another runs it: is that accepted?";

export async function run(scene) {
  const client = await scene.client();
  const zombies = [];
  // n = 0 ends well, n = 1 badly.
  for (const n of [0, 1]) {
    const zombie = await scene.worker(`zombie ${n}`);
    zombies.push(zombie);
    const ms = { [`zombie ${n}`]: 1_500, else: 15_000 };
    await client.enqueue({ n, ms, stubborn: true, failOn: n === 1 ? ["zombie 1"] : [] });
    await scene.until("start", (line) => line.n === n);
    zombie.child.kill("SIGSTOP");
  }
  const frozenAt = Date.now();
  await scene.worker("taker 0");
  await scene.worker("taker 1");
  const skips = scene.skipLease !== undefined;
  await scene.skipLease?.();
  const taken = [];
  for (const n of [0, 1])
    taken.push(await scene.until("start", (line) => line.n === n && line.by.startsWith("taker"), LIMIT_MS));
  for (const zombie of zombies) zombie.child.kill("SIGCONT");
  if (taken.some((line) => line === undefined)) return { text: "not taken over within a minute", isClean: false };
  await scene.until("end", (line) => line.n === 0 && line.by === "zombie 0");
  await scene.until("failed", (line) => line.n === 1);
  await sleep(2_500);
  // The takers are still at it: whatever is not "running" now was written by a zombie.
  const busy = [0, 1].map((n) => !scene.said("end", n).some((line) => line.by.startsWith("taker")));
  const states = [await scene.stateOf(0), await scene.stateOf(1)];
  if (!busy.every(Boolean)) return { text: "the takers were done too early to tell", isClean: false };
  const accepted = states.map((state) => state !== "running");
  for (const n of [0, 1]) await scene.until("end", (line) => line.n === n && line.by.startsWith("taker"), 20_000);
  await sleep(1_500);
  const ended = await scene.look();
  const word = (is) => (is ? "accepted" : "refused");
  const after = skips
    ? "after its 4 h (skipped)"
    : `after ${seconds(Math.max(...taken.map(({ at }) => at)) - frozenAt)}`;
  return {
    text: `completion ${word(accepted[0])}, failure ${word(accepted[1])}; taken over ${after}`,
    isClean: !accepted[0] && !accepted[1] && ended.every(({ state }) => state === "done"),
    values: { statesWhileTakersRan: states, ended },
  };
}
