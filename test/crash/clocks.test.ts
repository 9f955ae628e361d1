// Clocks that are wrong, and clocks that are set while everything runs. Times are the database's, spans are measured by a
// clock that cannot be set; so a machine whose time of day is off does its work like any other.
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { startTcpProxy } from "../support/tcp-proxy.ts";
import { expectAllDone, openScene, type Scene, SCHEMA } from "./scene.ts";

const MINUTE = 60_000;
const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

let scene: Scene;
let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "holdfast-clocks-"));
});
afterEach(async () => {
  await scene.close();
  await rm(folder, { recursive: true, force: true });
});

/** The path for a child's `clock`, and what sets that clock. */
async function makeClock(offMs: number): Promise<{ path: string; set(ms: number): Promise<void> }> {
  const path = join(folder, `clock-${Math.random()}`);
  const set = (ms: number): Promise<void> => writeFile(path, String(ms));
  await set(offMs);
  return { path, set };
}

test("workers whose clocks are ten minutes off, either way: nothing starts early or late, nobody takes over what runs", async () => {
  scene = await openScene();
  const options = { concurrency: 4, lease: "1s", poll: "500ms" };
  const workers = [];
  for (const [name, off] of [
    ["slow", -10 * MINUTE],
    ["fast", 10 * MINUTE],
  ] as const) {
    const { path } = await makeClock(off);
    workers.push(await scene.worker({ name, clock: path, ...options }));
  }
  // Longer than their leases, so that both must beat while the other one would take over.
  const long = await scene.enqueueMany([0, 1, 2, 3].map((n) => ({ n, ms: 3_500, trace: true })));
  const later = await Promise.all([4, 5, 6, 7].map((n) => scene.enqueue({ n, trace: true }, { delay: "2s" })));
  const failing = await scene.enqueue({ n: 8, failUpTo: 1, trace: true });
  await scene.drained();
  const ended = await scene.ended();
  expect(ended.map(({ state }) => state)).toEqual(Array.from({ length: 9 }, () => "done"));
  expect(ended.slice(0, 8).filter(({ attempt, claim_count }) => attempt !== 1 || claim_count !== 1)).toEqual([]);
  expect(ended[8]).toMatchObject({ id: failing, attempt: 2, claim_count: 2 });
  expect(new Set(ended.map(({ result }) => result!.by))).toEqual(new Set(["slow", "fast"]));
  const traces = await scene.traces();
  const startOf = (id: string): number => traces.find(({ job, what }) => job === id && what === "start")!.at.getTime();
  const enqueuedAt = Math.min(...long.map(startOf));
  for (const id of later) {
    expect(startOf(id) - enqueuedAt).toBeGreaterThan(1_000);
    expect(startOf(id) - enqueuedAt).toBeLessThan(15_000);
  }
  for (const { said } of workers) expect(said.filter(({ what }) => what.startsWith("lease."))).toEqual([]);
}, 60_000);

test("a clock that is set back or ahead by an hour, again and again, while jobs run: all are done once, nobody is charged", async () => {
  scene = await openScene();
  const clock = await makeClock(0);
  await scene.worker({ name: "jumpy", clock: clock.path, concurrency: 4, lease: "1s", poll: "500ms" });
  await scene.worker({ name: "steady", concurrency: 4, lease: "1s", poll: "500ms" });
  await scene.enqueueMany(Array.from({ length: 60 }, (_, n) => ({ n, ms: 300 + (n % 4) * 300 })));
  let isOver = false;
  const jumping = (async () => {
    for (let ahead = true; !isOver; ahead = !ahead) {
      await clock.set(ahead ? 60 * MINUTE : -60 * MINUTE);
      await sleep(400);
    }
  })();
  await scene.drained().finally(() => (isOver = true));
  await jumping;
  const ended = await scene.ended();
  expectAllDone(ended, 60);
  expect(ended.filter(({ claim_count }) => claim_count !== 1)).toEqual([]);
  expect(await scene.charged()).toEqual([]);
}, 60_000);

test("a worker that is told to stop while the database is away ends in time, though its clock is set back", async () => {
  scene = await openScene();
  const proxy = await startTcpProxy(scene.url);
  try {
    const clock = await makeClock(0);
    const worker = await scene.worker({
      name: "stopping",
      url: proxy.through(scene.url),
      clock: clock.path,
      lease: "30s",
      callTimeout: "1s",
      grace: "1s",
      abortGrace: "1s",
    });
    const id = await scene.enqueue({ n: 0, ms: 500 });
    await worker.until("started", ({ job }) => job === id);
    await proxy.refuse(true);
    proxy.cut();
    await worker.until("returned");
    worker.kill("SIGTERM");
    await worker.until("stopping");
    await sleep(1_500);
    await clock.set(-60 * MINUTE);
    const exit = await Promise.race([worker.exited, sleep(20_000)]);
    expect(exit, "it did not stop").toBeDefined();
    await scene.sql.query(`update ${SCHEMA}.leases set expires_at = ${SCHEMA}.clock()`);
    await scene.worker({ name: "next" });
    await scene.drained();
  } finally {
    await proxy.close();
  }
  expect((await scene.ended()).map(({ state }) => state)).toEqual(["done"]);
}, 90_000);
