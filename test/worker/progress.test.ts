import { describe, expect, test } from "vitest";
import { ended } from "../support/events.ts";
import { makeHeldKind, makeKind } from "../support/make.ts";
import { TIERS, useHoldfast } from "../support/open-test.ts";

describe.each(TIERS)("progress, %s", (tier) => {
  const bench = useHoldfast(tier);

  test("can be read while the job runs, and stays with the finished job", async () => {
    const held = makeHeldKind();
    const worker = await bench.hf.work([held.kind]);
    const { id } = await bench.hf.enqueue(held.kind, 1);
    const run = await held.started();
    expect((await bench.hf.jobs.get(id))?.progress).toBeNull();
    await run.progress(41, 148, "operations");
    const { progress } = (await bench.hf.jobs.get(id))!;
    expect(progress).toMatchObject({ done: 41, total: 148, note: "operations" });
    const now = await bench.hf.clock.now();
    expect(Math.abs(new Date(progress!.at).getTime() - now.getTime())).toBeLessThan(30_000);
    await run.progress(148);
    held.release();
    expect((await ended(bench.hf, id)).progress).toMatchObject({ done: 148, total: null, note: null });
    await worker.stop();
  });

  test("of many calls keeps the last one", async () => {
    const kind = makeKind({
      async run(job) {
        await Promise.all(Array.from({ length: 200 }, (_, n) => job.progress(n + 1, 200)));
      },
    });
    const worker = await bench.hf.work([kind]);
    const { id } = await bench.hf.enqueue(kind, 1);
    expect((await ended(bench.hf, id)).progress).toMatchObject({ done: 200, total: 200 });
    await worker.stop();
  });

  test("takes whatever it is handed, and never fails the job", async () => {
    const kind = makeKind({
      async run(job) {
        await job.progress(NaN, Infinity, "a\0b\uD800");
        await job.progress(0.5, -1, "x".repeat(10_000));
      },
    });
    const worker = await bench.hf.work([kind]);
    const { id } = await bench.hf.enqueue(kind, 1);
    const job = await ended(bench.hf, id);
    expect(job.state).toBe("done");
    expect(job.progress).toMatchObject({ done: 0.5, total: -1 });
    expect(job.progress?.note?.length).toBeLessThanOrEqual(500);
    await worker.stop();
  });

  test("of a run that is over is ignored", async () => {
    const held = makeHeldKind();
    held.release();
    const worker = await bench.hf.work([held.kind]);
    const { id } = await bench.hf.enqueue(held.kind, 1);
    await ended(bench.hf, id);
    await held.runs[0]!.progress(7);
    expect((await bench.hf.jobs.get(id))?.progress).toBeNull();
    await worker.stop();
  });
});
