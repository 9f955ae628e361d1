// Three workers under a storm of kill -9. HOLDFAST_KILLS=1000 for a long one.
import { afterEach, expect, test } from "vitest";
import { expectAllDone, openScene, type Scene } from "./scene.ts";

let scene: Scene;
afterEach(() => scene.close());

const KILLS = Number(process.env["HOLDFAST_KILLS"] ?? 15);
const JOBS = Math.max(2_000, KILLS * 100);

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
