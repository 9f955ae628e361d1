// Workers that are killed or frozen in the middle of a job. HOLDFAST_FREEZES=12 is what `npm run test:faults` has.
import { afterEach, expect, test } from "vitest";
import type { Said } from "../support/processes.ts";
import { openScene, type Scene, SCHEMA } from "./scene.ts";

const FREEZES = Number(process.env["HOLDFAST_FREEZES"] ?? 6);

let scene: Scene;
afterEach(() => scene.close());

test("a worker is killed in the middle of a job: another one runs it soon after the lease, uncharged", async () => {
  scene = await openScene();
  const first = await scene.worker({ name: "first", lease: "2s" });
  const id = await scene.enqueue({ n: 0, ms: 60_000, slowOn: ["first"] });
  await first.until("started");
  const second = await scene.worker({ name: "second", lease: "2s" });
  first.kill("SIGKILL");
  await first.exited;
  // Nobody renews it any more.
  const { rows: left } = await scene.sql.query<{ expires_at: Date }>(
    `select expires_at from ${SCHEMA}.leases where $1 = any(job_ids)`,
    [id],
  );
  expect(left).toHaveLength(1);
  const started = await second.until("started");
  // By the database's clock alone: how long the second worker's output takes to come here is nobody's promise.
  const { rows: again } = await scene.sql.query<{ started_at: Date }>(
    `select started_at from ${SCHEMA}.jobs where id = $1 union all select started_at from ${SCHEMA}.job_history where id = $1`,
    [id],
  );
  const lateMs = again[0]!.started_at.getTime() - left[0]!.expires_at.getTime();
  expect(lateMs).toBeGreaterThan(0);
  expect(lateMs).toBeLessThan(2_500);
  expect(started).toMatchObject({ job: id, attempt: 1 });
  await scene.drained();
  expect(await scene.ended()).toMatchObject([{ id, state: "done", attempt: 1, result: { by: "second" } }]);
  expect(await scene.charged()).toEqual([]);
});

test(
  `${FREEZES} times a worker is frozen past its lease and thawed: nothing it says is accepted, the effect is there once`,
  async () => {
    scene = await openScene();
    const workers = await Promise.all(["left", "right"].map((name) => scene.worker({ name, lease: "400ms" })));
    const zombies: { id: string; token: unknown }[] = [];
    for (let n = 0; n < FREEZES; n += 1) {
      // Whoever has it is frozen; the other one takes over. It does not listen to its signal: after the thaw it goes on,
      // writes its effect, reports progress and returns a result.
      // Every other time it is thawed while the other one is still at it.
      const thenMs = n % 2 === 0 ? 0 : 800;
      const id = await scene.enqueue({ n, ms: 900, thenMs, stubborn: true, progress: true, trace: true });
      const isAbout = (said: Said): boolean => said["job"] === id;
      const { victim, token } = await Promise.any(
        workers.map(async (worker) => ({ victim: worker, token: (await worker.until("started", isAbout))["token"] })),
      );
      const taker = workers.find((worker) => worker !== victim)!;
      // Frozen inside its transaction it would keep the job's row until PostgreSQL ends that.
      await expect.poll(async () => (await scene.traces()).some((trace) => trace.token === token)).toBe(true);
      victim.kill("SIGSTOP");
      await taker.until(thenMs === 0 ? "job.done" : "started", isAbout);
      victim.kill("SIGCONT");
      await victim.until("lease.lost", isAbout);
      const isZombies = (said: Said): boolean => isAbout(said) && said["token"] === token;
      expect(await victim.until("refused", isZombies)).toMatchObject({ code: "HOLDFAST_LEASE_LOST" });
      await victim.until("returned", isZombies);
      await taker.until("job.done", isAbout);
      zombies.push({ id, token });
    }
    // Time for everything a zombie may still try to say.
    await new Promise((resolve) => setTimeout(resolve, 500));
    const ended = await scene.ended();
    expect(ended.map((job) => [job.id, job.state, job.attempt])).toEqual(zombies.map(({ id }) => [id, "done", 1]));
    const effects = (await scene.traces()).filter(({ what }) => what === "end");
    for (const [n, job] of ended.entries()) {
      expect(job.token).not.toBe(zombies[n]!.token);
      // The effect is there once, and is that of the run that was accepted.
      expect(effects.flatMap((trace) => (trace.job === job.id ? [trace.token] : []))).toEqual([job.token]);
      // Result and progress are those of the run that was accepted.
      expect(job.result?.token).toBe(job.token);
      expect(job.progress?.note).toBe(job.result?.by);
      // One worker was told that it had done the job, and it is the one that had.
      const told = workers.filter((worker) =>
        worker.said.some((said) => said.what === "job.done" && said["job"] === job.id),
      );
      expect(told.map((worker) => worker.name)).toEqual([job.result?.by]);
    }
    expect(await scene.charged()).toEqual([]);
  },
  60_000 + FREEZES * 10_000,
);

test("handlers that block the event loop for three leases keep them", async () => {
  scene = await openScene();
  const workers = await Promise.all(["a", "b"].map((name) => scene.worker({ name, concurrency: 2, lease: "1s" })));
  await scene.enqueueMany([0, 1, 2, 3].map((n) => ({ n, ms: 50, spin: 3_000 })));
  await scene.drained();
  const ended = await scene.ended();
  expect(ended.map((job) => [job.n, job.state, job.attempt, job.claim_count])).toEqual(
    [0, 1, 2, 3].map((n) => [n, "done", 1, 1]),
  );
  for (const { said } of workers) expect(said.filter((line) => line.what === "lease.lost")).toEqual([]);
}, 60_000);
