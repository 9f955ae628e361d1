// A clean shutdown costs nobody an attempt, and hands its work over at once.
import { afterEach, expect, test } from "vitest";
import type { Child } from "../support/processes.ts";
import { expectAllDone, openScene, type Scene } from "./scene.ts";

let scene: Scene;
afterEach(() => scene.close());

for (const stubborn of [false, true]) {
  test(`SIGTERM with running jobs that ${stubborn ? "ignore" : "heed"} their signal: they start elsewhere at once, uncharged`, async () => {
    scene = await openScene();
    const options = { concurrency: 4, lease: "30s", grace: "300ms", abortGrace: "300ms" };
    const first = await scene.worker({ name: "first", ...options });
    const ids = await scene.enqueueMany(
      Array.from({ length: 4 }, (_, n) => ({ n, ms: 60_000, slowOn: ["first"], stubborn })),
    );
    for (const id of ids) await first.until("started", (said) => said["job"] === id);
    const second = await scene.worker({ name: "second", ...options });
    first.kill("SIGTERM");
    const stopping = await first.until("stopping");
    expect(await first.exited).toEqual({ code: 0, signal: null });
    // 300 ms of patience, 300 ms more for those that do not listen; then at once.
    expect(Date.now() - stopping.at).toBeLessThan(5_000);
    const handedOver = first.said.find((said) => said.what === "closed")!.at;
    for (const id of ids) {
      const started = await second.until("started", (said) => said["job"] === id);
      expect(started["attempt"]).toBe(1);
      expect(started.at - handedOver).toBeLessThan(2_500);
    }
    await scene.drained();
    expectAllDone(await scene.ended(), 4);
    expect(await scene.charged()).toEqual([]);
    expect(first.said.filter((said) => said.what === "job.released")).toHaveLength(4);
  });
}

test("jobs that end within the grace are finished by the worker that stops", async () => {
  scene = await openScene();
  const worker = await scene.worker({ name: "only", concurrency: 3, grace: "20s" });
  const ids = await scene.enqueueMany(Array.from({ length: 5 }, (_, n) => ({ n, ms: 1_000 })));
  await Promise.any(ids.map((id) => worker.until("started", (said) => said["job"] === id)));
  worker.kill("SIGTERM");
  expect(await worker.exited).toEqual({ code: 0, signal: null });
  const ended = await scene.ended();
  const started = worker.said.filter((said) => said.what === "started");
  expect(ended).toHaveLength(started.length);
  expect(ended.every((job) => job.state === "done" && job.attempt === 1)).toBe(true);
  // What it had not started is as it was.
  const { jobs } = await scene.hf.jobs.list({ state: "pending" });
  expect(jobs).toHaveLength(5 - started.length);
  expect(jobs.every((job) => job.attempt === 0)).toBe(true);
});

test("a rolling restart under load loses nothing and charges nobody", async () => {
  scene = await openScene();
  const total = 500;
  await scene.enqueueMany(Array.from({ length: total }, (_, n) => ({ n, ms: 50 + (n % 7) * 40 })));
  const options = { concurrency: 6, lease: "2s", grace: "100ms", abortGrace: "100ms" };
  let workers: Child[] = await Promise.all(["a", "b", "c"].map((name) => scene.worker({ name, ...options })));
  for (let round = 0; round < 6; round += 1) {
    const [oldest, ...rest] = workers;
    const fresh = scene.worker({ name: `fresh.${round}`, ...options });
    oldest!.kill("SIGTERM");
    expect(await oldest!.exited).toEqual({ code: 0, signal: null });
    workers = [...rest, await fresh];
  }
  await scene.drained();
  expectAllDone(await scene.ended(), total);
  expect(await scene.charged()).toEqual([]);
  // Otherwise nothing was handed over.
  expect((await scene.ended()).some((job) => job.claim_count > 1)).toBe(true);
  const { rows } = await scene.sql.query(
    "select count(*)::integer as suspects from hf_crash.job_history where last_error is not null",
  );
  expect(rows).toEqual([{ suspects: 0 }]);
}, 90_000);
