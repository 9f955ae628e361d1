// A hundred megabytes through the inbox: put, fetched, acked, by one process.
import { createHash, randomBytes } from "node:crypto";

const MEGABYTES = 100;

export const tuning = "throughput";

export async function run({ contender }) {
  const piece = randomBytes(1_048_576);
  const sent = createHash("sha256");
  for (let n = 0; n < MEGABYTES; n++) sent.update(piece);
  async function* content() {
    for (let n = 0; n < MEGABYTES; n++) yield piece;
  }
  const before = process.memoryUsage.rss();
  let highest = before;
  const watch = setInterval(() => (highest = Math.max(highest, process.memoryUsage.rss())), 20);
  const start = performance.now();
  const got = createHash("sha256");
  for await (const part of await contender.passThroughInbox(content())) got.update(part);
  const seconds = (performance.now() - start) / 1000;
  clearInterval(watch);
  if (got.digest("hex") !== sent.digest("hex")) throw new Error("the content that came out is another");
  return { megabytesPerSecond: MEGABYTES / seconds, memoryMegabytes: (highest - before) / 1_048_576 };
}
