// A job that kills its process, among jobs that do not deserve it.
import { afterEach, expect, test } from "vitest";
import { expectAllDone, openScene, type Scene, SCHEMA } from "./scene.ts";

let scene: Scene;
afterEach(() => scene.close());

test("one poison job among two hundred good ones: it ends dead, the others are done and not charged", async () => {
  scene = await openScene();
  const good = Array.from({ length: 200 }, (_, n) => ({ n, ms: 40 }));
  const payloads = [...good.slice(0, 60), { n: 200, die: "abort" as const }, ...good.slice(60)];
  const ids = await scene.enqueueMany(payloads);
  const poison = ids[60]!;
  const options = { concurrency: 4, lease: "1500ms" };
  const startedAt = Date.now();
  const processes = ["left", "right"].map((name) => scene.supervised({ name, ...options }));
  await scene.drained(90_000);
  expect(Date.now() - startedAt).toBeLessThan(60_000);
  await Promise.all(processes.map((each) => each.stop()));

  const job = await scene.hf.jobs.get(poison);
  expect(job).toMatchObject({ state: "dead", lastError: { reason: "crashed" } });
  // Once beside others, which counts against nobody, and three times alone.
  expect(job!.claimCount).toBeGreaterThanOrEqual(4);
  expect(processes[0]!.lives + processes[1]!.lives).toBeGreaterThanOrEqual(2 + 4);
  expectAllDone(await scene.ended(), 200);
  expect(await scene.charged()).toEqual([{ n: 200, outcome: "dead" }]);
  const { rows } = await scene.sql.query(`select crash_count, hold from ${SCHEMA}.jobs`);
  expect(rows).toEqual([{ crash_count: 3, hold: 3 }]);
}, 120_000);

test("a suspect that hangs is ended by its timeout, and does not keep its process from other work", async () => {
  scene = await openScene();
  const hung = await scene.enqueue({ n: 0, ms: 120_000, stubborn: true });
  await scene.sql.query(`update ${SCHEMA}.jobs set hold = 2`);
  const worker = await scene.worker({ name: "only", concurrency: 2, lease: "2s", timeout: "1s" });
  await worker.until("started", (said) => said["job"] === hung);
  const other = await scene.enqueue({ n: 1 });
  await worker.until("job.retrying", (said) => said["job"] === hung);
  await worker.until("job.done", (said) => said["job"] === other, 15_000);
}, 60_000);
