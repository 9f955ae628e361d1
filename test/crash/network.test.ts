// The network between worker and database: silence, resets, and answers that never arrive.
import { afterEach, expect, test } from "vitest";
import { open } from "#src/index.js";
import { startTcpProxy, type TcpProxy } from "../support/tcp-proxy.ts";
import { expectAllDone, makeFlag, openScene, type Scene, SCHEMA, work } from "./scene.ts";

let scene: Scene;
let proxy: TcpProxy;
afterEach(async () => {
  proxy.resume();
  await scene.close();
  await proxy.close();
});

const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

async function openBehindProxy(): Promise<void> {
  scene = await openScene();
  proxy = await startTcpProxy(scene.url);
}

test("a worker behind a silent network: another one takes over, and what the first says later is refused", async () => {
  await openBehindProxy();
  const cutOff = await scene.worker({
    name: "cut off",
    url: proxy.through(scene.url),
    concurrency: 4,
    callTimeout: "2s",
  });
  const ids = await scene.enqueueMany(
    Array.from({ length: 4 }, (_, n) => ({ n, ms: 4_000, slowOn: ["cut off"], stubborn: true, progress: true })),
  );
  for (const id of ids) await cutOff.until("started", (said) => said["job"] === id);
  proxy.pause();
  const taker = await scene.worker({ name: "taker", concurrency: 4 });
  for (const id of ids) {
    // Aborted by its own clock, before anybody else can have the job (as far as two pipes can tell).
    const aborted = await cutOff.until("aborted", (said) => said["job"] === id);
    expect(aborted["why"]).toBe("lease-lost");
    const started = await taker.until("started", (said) => said["job"] === id);
    expect(aborted.at).toBeLessThan(started.at + 1_000);
  }
  for (const id of ids) await cutOff.until("returned", (said) => said["job"] === id);
  proxy.resume();
  await scene.drained();
  await cutOff.until("trouble");
  // It works again.
  taker.kill("SIGTERM");
  await taker.exited;
  const last = await scene.enqueue({ n: 4 });
  await cutOff.until("job.done", (said) => said["job"] === last);
  const ended = await scene.ended();
  expectAllDone(ended, 5);
  expect(ended.map((job) => job.result!.by)).toEqual(["taker", "taker", "taker", "taker", "cut off"]);
  expect(ended.slice(0, 4).map((job) => job.progress?.note)).toEqual(["taker", "taker", "taker", "taker"]);
  expect(await scene.charged()).toEqual([]);
}, 60_000);

test("everybody is behind a silent network for longer than a lease: nobody is blamed for it", async () => {
  await openBehindProxy();
  const url = proxy.through(scene.url);
  const flag = await makeFlag();
  const id = await scene.enqueue({ n: 0, whileFile: flag.path });
  // One more crash of its own would bury it.
  await scene.sql.query(`update ${SCHEMA}.jobs set hold = 2, crash_count = 2`);
  const options = { url, lease: "2s", callTimeout: "1s" };
  const alone = await scene.worker({ name: "alone", ...options });
  await alone.until("started", (said) => said["job"] === id);
  const beside = await scene.worker({ name: "beside", concurrency: 4, ...options });
  const others = await scene.enqueueMany([1, 2, 3, 4].map((n) => ({ n, whileFile: flag.path })));
  for (const other of others) await beside.until("started", (said) => said["job"] === other);
  proxy.pause();
  for (const worker of [alone, beside]) await worker.until("aborted");
  await sleep(1_500);
  // Statements that were under way are delivered now, too late.
  proxy.resume();
  for (const worker of [alone, beside]) await worker.until("job.released");
  await flag.remove();
  await scene.drained();
  expect(await scene.hf.jobs.get(id)).toMatchObject({ state: "done" });
  const ended = await scene.ended();
  expectAllDone(ended, 5);
  expect(await scene.charged()).toEqual([]);
  // Given back by those who had them, not taken away from the dead.
  for (const worker of [alone, beside]) {
    expect(worker.isRunning).toBe(true);
    expect(worker.said.filter((said) => said.what === "lease.expired")).toEqual([]);
  }
}, 60_000);

test("every connection is reset again and again: all is done, nobody is charged", async () => {
  await openBehindProxy();
  const url = proxy.through(scene.url);
  const workers = await Promise.all(
    ["a", "b"].map((name) => scene.worker({ name, url, concurrency: 5, lease: "2s", callTimeout: "2s" })),
  );
  await scene.enqueueMany(Array.from({ length: 200 }, (_, n) => ({ n, ms: 100 })));
  for (let round = 0; round < 20; round += 1) {
    await sleep(200);
    proxy.cut();
  }
  await scene.drained();
  expect(workers.map((worker) => worker.isRunning)).toEqual([true, true]);
  expectAllDone(await scene.ended(), 200);
  expect(await scene.charged()).toEqual([]);
}, 60_000);

test("while every connection is refused a busy process does not storm the server, and afterwards all is done", async () => {
  await openBehindProxy();
  const url = proxy.through(scene.url);
  const worker = await scene.worker({ name: "busy", url, concurrency: 40, lease: "30s", callTimeout: "2s" });
  const hf = await open({ database: url, schema: SCHEMA, callTimeout: "2s" });
  try {
    const ids = await scene.enqueueMany(Array.from({ length: 40 }, (_, n) => ({ n, ms: 1_500 })));
    for (const id of ids) await worker.until("started", (said) => said["job"] === id);
    proxy.onData(({ direction }) => (direction === "to-server" ? "cut" : "pass"));
    const before = proxy.accepted;
    const [seconds, pools] = [6, 2 * 10];
    // Forty outcomes that nobody takes, beats, claims, the janitor; and two hundred enqueues in the other process.
    const asked = Array.from({ length: 200 }, (_, n) => hf.enqueue(work, { n: 1_000 + n }).catch(() => undefined));
    await sleep(seconds * 1_000);
    const knocks = (proxy.accepted - before) / seconds;
    proxy.onData(undefined);
    const startedAt = Date.now();
    const stored = (await Promise.all(asked)).filter((answer) => answer !== undefined);
    await scene.drained();
    expect(knocks).toBeLessThanOrEqual(2 * pools);
    expect(Date.now() - startedAt).toBeLessThan(30_000);
    const ended = await scene.ended();
    expectAllDone(ended.slice(0, 40), 40);
    expect(ended).toHaveLength(40 + stored.length);
    expect(await scene.charged()).toEqual([]);
  } finally {
    await hf.close();
  }
}, 60_000);

test("answers to enqueues are lost after the commit: each is one job, and is acknowledged", async () => {
  await openBehindProxy();
  const hf = await open({ database: proxy.through(scene.url), schema: SCHEMA, callTimeout: "3s" });
  let seen = 0;
  let lost = 0;
  proxy.onData(({ direction, data }) => {
    if (direction !== "to-server" || !data.includes("insert")) return "pass";
    seen += 1;
    if (seen % 2 === 0) return "pass";
    lost += 1;
    return "lose-reply";
  });
  try {
    for (let n = 0; n < 12; n += 1) {
      const { created } = await hf.enqueue(
        work,
        { n },
        n % 3 === 0 ? { key: `k${n}` } : n % 3 === 1 ? { group: `g${n}` } : {},
      );
      expect([n, created]).toEqual([n, true]);
    }
    const many = await hf.enqueueMany(
      work,
      Array.from({ length: 30 }, (_, more) => ({
        payload: { n: 12 + more },
        ...(more % 2 ? { key: `m${more}` } : {}),
      })),
    );
    expect(many.filter((job) => !job.created)).toEqual([]);
    const together = await Promise.all(Array.from({ length: 30 }, (_, more) => hf.enqueue(work, { n: 42 + more })));
    expect(new Set(together.map((job) => job.id)).size).toBe(30);
  } finally {
    proxy.onData(undefined);
    await hf.close();
  }
  expect(lost).toBeGreaterThanOrEqual(6);
  const { rows } = await scene.sql.query(`select (payload ->> 'n')::integer as n from ${SCHEMA}.jobs order by n`);
  expect(rows).toEqual(Array.from({ length: 72 }, (_, n) => ({ n })));
}, 60_000);

test("answers to claims and settles are lost after the commit: every job is run once", async () => {
  await openBehindProxy();
  let lost = 0;
  let seen = 0;
  const worker = await scene.worker({
    name: "a",
    url: proxy.through(scene.url),
    concurrency: 5,
    lease: "20s",
    callTimeout: "3s",
  });
  proxy.onData(({ direction, data }) => {
    if (direction !== "to-server" || !(data.includes("claim_") || data.includes("settle_"))) return "pass";
    seen += 1;
    if (seen % 3 !== 0) return "pass";
    lost += 1;
    return "lose-reply";
  });
  await scene.enqueueMany(
    Array.from({ length: 60 }, (_, n) => ({ n, ms: 30 + (n % 4) * 20, failUpTo: n % 10 === 9 ? 1 : 0 })),
  );
  await scene.drained();
  proxy.onData(undefined);
  expect(lost).toBeGreaterThan(5);
  const ended = await scene.ended();
  expect(ended.filter((job) => job.claim_count !== (job.n % 10 === 9 ? 2 : 1))).toEqual([]);
  expect(ended.filter((job) => job.attempt !== (job.n % 10 === 9 ? 2 : 1) || job.state !== "done")).toEqual([]);
  expect(worker.said.filter((said) => said.what === "started")).toHaveLength(66);
  expect(await scene.charged()).toHaveLength(6);
}, 60_000);

test("every other beat fails, on its way there or back: unknown is not lost", async () => {
  await openBehindProxy();
  const worker = await scene.worker({ name: "a", url: proxy.through(scene.url), concurrency: 3, lease: "5s" });
  let beats = 0;
  proxy.onData(({ direction, data }) => {
    if (direction !== "to-server" || !data.includes("beat")) return "pass";
    beats += 1;
    return (["cut", "pass", "lose-reply", "pass"] as const)[(beats - 1) % 4]!;
  });
  // Whoever would take the jobs if their lease were lost.
  const watcher = await scene.worker({ name: "b", concurrency: 1, lease: "5s" });
  await scene.enqueueMany([0, 1, 2, 3].map((n) => ({ n, ms: 9_000 })));
  await scene.drained();
  expect(beats).toBeGreaterThan(3);
  const said = [...worker.said, ...watcher.said];
  expect(said.filter(({ what }) => what === "aborted" || what === "lease.lost")).toEqual([]);
  const ended = await scene.ended();
  expectAllDone(ended, 4);
  expect(ended.map((job) => job.claim_count)).toEqual([1, 1, 1, 1]);
}, 60_000);
