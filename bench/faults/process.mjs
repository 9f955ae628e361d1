// One process of a contender: a worker whose handlers do what their payload says, or a client that enqueues what it is told to.
// What handlers do is appended to a file, line by line and at once, so that nothing is lost when the process is killed.
//
// payload: n
//   ms         how long it takes; { A: 3000, else: 0 }: by the worker's name
//   stubborn   does not listen to its signal
//   failOn     names of workers on which it fails in the end
//   dieAfter   the process kills itself after so many milliseconds
//   spin       blocks the event loop for so many milliseconds
import { appendFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

const config = JSON.parse(process.argv[2]);
const contender = await import(`./contenders/${config.contender}.mjs`);

function say(what, fields) {
  appendFileSync(config.log, `${JSON.stringify({ at: Date.now(), what, by: config.name, ...fields })}\n`);
}

// Nobody wants this process any more.
process.on("disconnect", () => process.exit(3));

async function handle(payload, { attempt, stalls, signal }) {
  const { n, ms = 0, stubborn, failOn = [], dieAfter, spin } = payload;
  say("start", { n, attempt, stalls });
  if (dieAfter !== undefined) {
    await sleep(dieAfter);
    process.kill(process.pid, "SIGKILL");
  }
  if (spin) for (const until = Date.now() + spin; Date.now() < until;);
  const takes = typeof ms === "number" ? ms : (ms[config.name] ?? ms.else);
  try {
    await sleep(takes, undefined, stubborn || !signal ? {} : { signal });
  } catch (error) {
    say("aborted", { n });
    throw error;
  }
  if (failOn.includes(config.name)) {
    say("failed", { n });
    throw new Error(`fails on ${config.name}`);
  }
  say("end", { n });
  return { by: config.name };
}

if (config.role === "worker") {
  await contender.openWorker(config.url, config, handle);
} else {
  const client = await contender.openClient(config.url, config);
  process.on("message", async ({ id, verb, args }) => {
    try {
      // No key arrives as null.
      const answer = await client[verb](...args.map((arg) => arg ?? undefined));
      process.send({ id, answer: answer ?? null });
    } catch (error) {
      process.send({ id, error: error.message || error.code || String(error) });
    }
  });
}
process.send({ ready: true });
