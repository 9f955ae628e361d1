// The enqueue is stored and its answer never arrives. What does the caller hear, and what comes of asking again?
import { sleep } from "../scene.mjs";

export const title = "commit unknown";
export const question =
  "an enqueue is stored and its answer lost, and the caller asks again with its key: how many jobs?";

/** The next enqueue of `marker` reaches the server and is committed there, and the answer is thrown away with the connection. */
function loseAnswerTo(proxy, marker) {
  const inTransaction = new Map();
  return new Promise((resolve) => {
    let isWaitingForCommit;
    let isOver = false;
    proxy.onData(({ direction, data, connection }) => {
      if (direction !== "to-server" || isOver) return "pass";
      const text = data.toString("latin1");
      if (/\bbegin\b/i.test(text)) inTransaction.set(connection, true);
      const isMarked = text.includes(marker);
      const isCommit = /\bcommit\b/i.test(text);
      if (isMarked && inTransaction.get(connection) && !isCommit) isWaitingForCommit = connection;
      if (isCommit) inTransaction.set(connection, false);
      if ((isMarked && isWaitingForCommit === undefined) || (isCommit && isWaitingForCommit === connection)) {
        isOver = true;
        return { verdict: "lose-reply", lost: () => resolve(true) };
      }
      return "pass";
    });
  });
}

export async function run(scene) {
  const { proxy, url } = await scene.proxy();
  const client = await scene.client({ url });
  await client.enqueue({ n: 9 });
  const heard = async (n, key) => {
    const marker = `marker-${n}`;
    const lost = loseAnswerTo(proxy, marker);
    const answer = await client.tryEnqueue({ n, marker }, key, 25_000);
    const wasLost = await Promise.race([lost, sleep(100).then(() => false)]);
    proxy.onData(undefined);
    if (!wasLost) throw new Error(`the answer about ${n} was not lost`);
    return answer.error ? "an error" : answer.isSilent ? "nothing for 25 s" : "ok";
  };
  // 0: with a key, asked again at once. 1: without a key.
  const withKey = await heard(0, "key 0");
  await client.enqueue({ n: 0, marker: "marker-0" }, "key 0");
  const withoutKey = await heard(1);
  await scene.worker("w", { concurrency: 3 });
  await scene.until("end", ({ n }) => n === 1, 20_000);
  await sleep(1_500);
  const runsAtOnce = scene.said("start", 0).length;
  const runsWithoutKey = scene.said("start", 1).length;
  // 2: with a key, asked again when the job is done.
  await heard(2, "key 2");
  await scene.until("end", ({ n }) => n === 2, 20_000);
  await sleep(500);
  await client.enqueue({ n: 2, marker: "marker-2" }, "key 2");
  await sleep(3_000);
  const runsLater = scene.said("start", 2).length;
  return {
    text:
      `caller hears ${withKey}; asked again at once: ${runsAtOnce} run, once the job is done: ${runsLater} ` +
      `(without a key, not asked again: hears ${withoutKey}, ${runsWithoutKey} run)`,
    isClean: runsAtOnce === 1 && runsLater === 1 && runsWithoutKey === 1,
    values: { withKey, withoutKey, runsAtOnce, runsLater, runsWithoutKey },
  };
}
