import { describe, expect, test } from "vitest";
import { runDue } from "#src/testing/index.js";
import { ended, nextOf } from "../support/events.ts";
import { makeKind } from "../support/make.ts";
import { TIERS, useHoldfast } from "../support/open-test.ts";

describe.each(TIERS)("a job that is due later, %s", (tier) => {
  const bench = useHoldfast(tier);

  test("does not run before its time, and runs when it has come", async () => {
    const kind = makeKind();
    const { id } = await bench.hf.enqueue(kind, 1, { delay: "31m" });
    expect(await runDue(bench.hf, [kind])).toMatchObject({ runs: 0 });
    await bench.hf.clock.advance("30m");
    expect(await runDue(bench.hf, [kind])).toMatchObject({ runs: 0 });
    await bench.hf.clock.advance("1m");
    expect(await runDue(bench.hf, [kind])).toMatchObject({ runs: 1, done: 1 });
    expect(await bench.hf.jobs.get(id)).toMatchObject({ state: "done" });
  });

  test("runs at the time it names", async () => {
    const kind = makeKind();
    const now = await bench.hf.clock.now();
    const { id } = await bench.hf.enqueue(kind, 1, { runAt: new Date(now.getTime() + 86_400_000) });
    await bench.hf.clock.advance("23h");
    expect(await runDue(bench.hf, [kind])).toMatchObject({ runs: 0 });
    await bench.hf.clock.advance("61m");
    await runDue(bench.hf, [kind]);
    expect(await bench.hf.jobs.get(id)).toMatchObject({ state: "done" });
  });

  test.each([["a kind that has worked before"], ["a kind that never has"]])(
    "is started on time by a worker that is awake: %s",
    async (which) => {
      const kind = makeKind();
      // Nothing but the due time itself can wake it.
      const worker = await bench.hf.work([kind], { poll: "1m" });
      if (which.includes("before")) await ended(bench.hf, (await bench.hf.enqueue(kind, 0)).id);
      const began = performance.now();
      const { id } = await bench.hf.enqueue(kind, 1, { delay: "300ms" });
      await nextOf(bench.hf, "job.claimed", id);
      const took = performance.now() - began;
      expect(took).toBeGreaterThanOrEqual(295);
      expect(took).toBeLessThan(5_000);
      await ended(bench.hf, id);
      await worker.stop();
    },
  );

  test("and was due long ago is started at once", async () => {
    const kind = makeKind();
    const worker = await bench.hf.work([kind], { poll: "1m" });
    await ended(bench.hf, (await bench.hf.enqueue(kind, 0)).id);
    const began = performance.now();
    const { id } = await bench.hf.enqueue(kind, 1, { runAt: "2001-02-03T04:05:06Z" });
    await ended(bench.hf, id);
    expect(performance.now() - began).toBeLessThan(3_000);
    await worker.stop();
  });

  test("runs in the order of the due times, not of enqueueing", async () => {
    const seen: number[] = [];
    const kind = makeKind<number>({ run: (job) => void seen.push(job.payload) });
    for (const [payload, delay] of [
      [3, "30m"],
      [1, "10m"],
      [2, "20m"],
    ] as const) {
      await bench.hf.enqueue(kind, payload, { delay });
    }
    await bench.hf.clock.advance("1h");
    await runDue(bench.hf, [kind]);
    expect(seen).toEqual([1, 2, 3]);
  });
});
