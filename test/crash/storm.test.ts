// Three workers under a storm of kill -9. HOLDFAST_KILLS=1000 for a long one; `npm run test:faults` has 16.
import { afterEach, expect, test } from "vitest";
import { expectAllDone, openScene, type Scene } from "./scene.ts";

let scene: Scene;
afterEach(() => scene.close());

const KILLS = Number(process.env["HOLDFAST_KILLS"] ?? 6);
const JOBS = Math.max(800, KILLS * 100);

test(
  `${JOBS} jobs through ${KILLS} kills: every one is done, none is charged`,
  async () => {
    scene = await openScene();
    const workers = ["a", "b", "c"].map((name) => scene.supervised({ name, concurrency: 8, lease: "1s" }));
    // Enqueued along the way, one by one and in bulks, so that kills meet every kind of claim.
    const enqueuing = (async () => {
      for (let n = 0; n < JOBS; n += 20) {
        const payloads = Array.from({ length: 20 }, (_, more) => ({ n: n + more, ms: (n + more) % 40 }));
        await scene.enqueueMany(payloads.slice(0, 15));
        await Promise.all(payloads.slice(15).map((payload) => scene.enqueue(payload, { key: `k${payload.n}` })));
        await new Promise((resolve) => setTimeout(resolve, (KILLS * 900) / (JOBS / 20)));
      }
    })();
    for (let kills = 0; kills < KILLS;) {
      await new Promise((resolve) => setTimeout(resolve, 300 + Math.random() * 500));
      await scene.forgiven();
      const { child } = workers[kills % 3]!;
      // One that has not begun anything yet is not worth killing.
      if (!child.isRunning || !child.said.some((said) => said.what === "started")) continue;
      child.kill("SIGKILL");
      kills += 1;
    }
    await enqueuing;
    await scene.drained(60_000 + KILLS * 1_000);
    await Promise.all(workers.map((worker) => worker.stop()));
    const ended = await scene.ended();
    expectAllDone(ended, JOBS);
    expect(await scene.charged()).toEqual([]);
    // Otherwise no kill met a running job.
    expect(ended.some((job) => job.claim_count > 1)).toBe(true);
  },
  150_000 + KILLS * 3_000,
);

test("workers that claim many short jobs lightly, killed in the middle: every job is done, none is charged", async () => {
  const count = 30_000;
  scene = await openScene();
  for (let n = 0; n < count; n += 5_000) {
    await scene.enqueueMany(Array.from({ length: 5_000 }, (_, more) => ({ n: n + more, mute: true })));
  }
  let seenLight = 0;
  const workers = ["a", "b"].map((name) => scene.supervised({ name, concurrency: 200, lease: "1s" }));
  const isOpen = async (): Promise<boolean> =>
    (await scene.sql.query("select 1 from hf_crash.jobs where state <> 'dead' limit 1")).rowCount === 1;
  for (let kills = 0; kills < 8 && (await isOpen());) {
    const { rows } = await scene.sql.query("select worker_id from hf_crash.leases where light");
    if (rows.length === 0) continue;
    seenLight += 1;
    const { child } = workers[kills % 2]!;
    if (!child.isRunning) continue;
    child.kill("SIGKILL");
    kills += 1;
    await scene.forgiven();
  }
  expect(seenLight).toBeGreaterThan(2);
  await scene.drained(90_000);
  await Promise.all(workers.map((worker) => worker.stop()));
  const ended = await scene.ended();
  expect(ended).toHaveLength(count);
  expect(new Set(ended.map((job) => job.n)).size).toBe(count);
  expect(ended.filter((job) => job.state !== "done" || job.attempt !== 1)).toEqual([]);
  expect(await scene.charged()).toEqual([]);
  // Otherwise no kill met a claim.
  expect(ended.some((job) => job.claim_count > 1)).toBe(true);
}, 150_000);
