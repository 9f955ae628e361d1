// Stopping costs nobody an attempt: what runs is waited for, then told, then given back.
import { describe, expect, test } from "vitest";
import type { JobTransaction } from "#src/job/handler.js";
import { runDue } from "#src/testing/index.js";
import { assertSound } from "../support/assert-sound.ts";
import { ended, nextOf } from "../support/events.ts";
import { aborted, caught, makeGate, makeHeldKind, makeKind } from "../support/make.ts";
import { TIERS, useHoldfast } from "../support/open-test.ts";

describe.each(TIERS)("a worker, %s", (tier) => {
  const bench = useHoldfast(tier);

  const workers = async (): Promise<string[]> =>
    (await bench.db.query<{ id: string }>("select id from holdfast.workers")).rows.map(({ id }) => id);

  test("is listed while it works, and not afterwards", async () => {
    const worker = await bench.hf.work([makeKind()], { name: "mine", concurrency: 3 });
    const { rows } = await bench.db.query("select name, concurrency from holdfast.workers where id = $1", [worker.id]);
    expect(rows).toEqual([{ name: "mine", concurrency: 3 }]);
    await worker.stop();
    expect(await workers()).not.toContain(worker.id);
  });

  test("stopped twice is stopped once, and cannot be started again", async () => {
    const worker = await bench.hf.work([makeKind()]);
    await worker.start();
    await Promise.all([worker.stop(), worker.stop()]);
    await worker.stop();
    expect(await caught(worker.start())).toMatchObject({ message: expect.stringContaining("stopped") });
  });

  test("waits for what runs, and starts nothing new meanwhile", async () => {
    const held = makeHeldKind<number>({ then: (job) => job.payload });
    const worker = await bench.hf.work([held.kind], { concurrency: 2 });
    const jobs = await bench.hf.enqueueMany(held.kind, [{ payload: 1 }, { payload: 2 }, { payload: 3 }]);
    await held.started(2);
    let isStopped = false;
    const stopped = worker.stop().then(() => (isStopped = true));
    expect(worker.running).toBe(2);
    held.release();
    await stopped;
    expect(isStopped).toBe(true);
    expect(worker.running).toBe(0);
    const states = await Promise.all(jobs.map(async ({ id }) => (await bench.hf.jobs.get(id))?.state));
    expect(states).toEqual(["done", "done", "pending"]);
    expect(held.runs).toHaveLength(2);
  });

  test("tells what still runs after the grace, and what ends because of it uses no attempt", async () => {
    const held = makeHeldKind({
      then: () => {
        throw new Error("stopped");
      },
    });
    const worker = await bench.hf.work([held.kind], { grace: "50ms", abortGrace: "10s" });
    const { id } = await bench.hf.enqueue(held.kind, 1);
    const run = await held.started();
    const released = nextOf(bench.hf, "job.released", id);
    const stopped = worker.stop();
    await aborted(run.signal);
    held.release();
    await released;
    await stopped;
    expect(await bench.hf.jobs.get(id)).toMatchObject({ state: "pending", attempt: 0, claimCount: 1, lastError: null });
    expect(await bench.hf.jobs.attempts(id)).toEqual([]);
  });

  test("lets what finishes in spite of the abort be done", async () => {
    const held = makeHeldKind({ then: () => "in time" });
    const worker = await bench.hf.work([held.kind], { grace: "0s", abortGrace: "10s" });
    const { id } = await bench.hf.enqueue(held.kind, 1);
    const run = await held.started();
    const stopped = worker.stop();
    await aborted(run.signal);
    held.release();
    await stopped;
    expect(await bench.hf.jobs.get(id)).toMatchObject({ state: "done", result: "in time" });
  });

  test("gives back what does not listen, and refuses what it says later", async () => {
    const held = makeHeldKind<number>({ then: () => "too late" });
    const worker = await bench.hf.work([held.kind], { grace: "0s", abortGrace: "50ms" });
    const { id } = await bench.hf.enqueue(held.kind, 1);
    await held.started();
    await worker.stop();
    expect(await bench.hf.jobs.get(id)).toMatchObject({ state: "pending", attempt: 0 });
    held.release();
    await held.runs[0]!.progress(1);
    expect(await bench.hf.jobs.get(id)).toMatchObject({ state: "pending", attempt: 0, progress: null, result: null });
    // Whoever takes it next has all its attempts.
    await runDue(bench.hf, [held.kind]);
    expect(await bench.hf.jobs.get(id)).toMatchObject({ state: "done", attempt: 1, claimCount: 2 });
  });

  test("is stopped by await using", async () => {
    let id: string;
    {
      await using worker = await bench.hf.work([makeKind()]);
      id = worker.id;
      expect(await workers()).toContain(id);
    }
    expect(await workers()).not.toContain(id);
  });

  test("says what it runs", async () => {
    const held = makeHeldKind();
    const worker = await bench.hf.work([held.kind]);
    const { id } = await bench.hf.enqueue(held.kind, 1);
    await held.started();
    expect(worker.runningJobs()).toMatchObject([{ id, kind: held.kind.kind, attempt: 1 }]);
    held.release();
    await ended(bench.hf, id);
    await worker.stop();
  });
});

describe("a worker that is stopped", () => {
  const bench = useHoldfast("server");

  test("hands over at once what is inside a long statement of a fenced transaction: it is stopped, and its row is free", async () => {
    const inside = makeGate();
    let error: unknown;
    const kind = makeKind<null>({
      async run(job) {
        error = await caught(
          job.transaction(async (tx) => {
            const slept = tx.query("select pg_sleep(8)");
            inside.open();
            await slept;
          }),
        );
      },
    });
    const worker = await bench.hf.work([kind], { grace: "0s", abortGrace: "50ms" });
    const { id } = await bench.hf.enqueue(kind, null);
    await inside.opened;
    await worker.stop();
    expect(await bench.hf.jobs.get(id)).toMatchObject({ state: "pending", attempt: 0 });
    expect(error).toMatchObject({ code: "HOLDFAST_LEASE_LOST" });
    // The server was asked to stop it, and nobody takes the lost connection for a server that is away.
    const { rows } = await bench.db.query(
      "select 1 from pg_stat_activity where query = 'select pg_sleep(8)' and state = 'active'",
    );
    expect(rows).toEqual([]);
    await bench.hf.jobs.cancel(id);
  });

  test("hands its work over at once: another process starts it without waiting for a lease or a poll", async () => {
    const held = makeHeldKind<number>();
    const other = await bench.another();
    const { id } = await bench.hf.enqueue(held.kind, 1);
    const first = await bench.hf.work([held.kind], { grace: "0s", abortGrace: "0s" });
    await held.started();
    const second = await other.work([held.kind], { poll: "1m" });
    const began = performance.now();
    const taken = nextOf(other, "job.claimed", id);
    await first.stop();
    await taken;
    expect(performance.now() - began).toBeLessThan(5_000);
    held.release();
    expect(await ended(other, id)).toMatchObject({ state: "done", attempt: 1, claimCount: 2 });
    await second.stop();
  });

  test.each(["transaction", "step", "chunk"])(
    "hands over what does not listen inside its own %s, uncharged and unsuspected, and that writes nothing",
    async (where) => {
      const gate = makeGate();
      let said: unknown;
      const inside = async (tx: JobTransaction): Promise<void> => {
        await tx.query("select 1");
        await gate.opened;
        said = await caught(tx.query("select 2"));
      };
      const deaf = makeKind<number>({
        async run(job) {
          if (where === "transaction") await job.transaction(inside);
          if (where === "step") await job.step("slow", inside);
          if (where === "chunk") for await (const chunk of job.chunks("slow", [1, 2])) await chunk.save(inside);
        },
      });
      const { id } = await bench.hf.enqueue(deaf, 1);
      const first = await bench.hf.work([deaf], { grace: "0s", abortGrace: "50ms" });
      await nextOf(bench.hf, "job.claimed", id);
      const other = await bench.another();
      const second = await other.work([{ ...deaf, run: () => undefined }], { poll: "1m" });
      const taken = nextOf(other, "job.claimed", id);
      await first.stop();
      await taken;
      expect(await ended(other, id)).toMatchObject({ state: "done", attempt: 1, claimCount: 2, lastError: null });
      gate.open();
      await expect.poll(() => said).toMatchObject({ code: "HOLDFAST_CLOSED" });
      await second.stop();
    },
  );

  test("by closing its client leaves nothing behind", async () => {
    const other = await bench.another();
    const held = makeHeldKind({ then: () => "done" });
    await other.work([held.kind]);
    const { id } = await bench.hf.enqueue(held.kind, 1);
    await held.started();
    const closed = other.close();
    held.release();
    await closed;
    expect(await bench.hf.jobs.get(id)).toMatchObject({ state: "done" });
    await assertSound(bench.db, "holdfast", { idle: true });
    expect(await caught(other.enqueue(held.kind, 1))).toMatchObject({ code: "HOLDFAST_CLOSED" });
    expect(await caught(other.work([held.kind]))).toMatchObject({ code: "HOLDFAST_CLOSED" });
    await other.close();
  });
});
