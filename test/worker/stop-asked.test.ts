// A worker that somebody else asks to end: it takes no more jobs, gives those that run their grace, releases the rest, and is
// gone; its process goes on.
import { describe, expect, test } from "vitest";
import { ended } from "../support/events.ts";
import { caught, makeHeldKind, makeKind } from "../support/make.ts";
import { TIERS, useHoldfast } from "../support/open-test.ts";
import { waitForEvent } from "#src/testing/wait-for-event.js";

describe.each(TIERS)("%s", (tier) => {
  const bench = useHoldfast(tier);

  test("it ends when what runs in it has; another takes the rest; it cannot be resumed meanwhile", async () => {
    const held = makeHeldKind();
    const kind = makeKind();
    const first = await bench.hf.work([held.kind, kind], { name: "one", poll: "50ms", grace: "20s" });
    const running = await bench.hf.enqueue(held.kind, 1);
    await held.started();
    const stopped = waitForEvent(bench.hf, "worker.stopped", ({ workerId }) => workerId === first.id, {
      timeout: "15s",
    });
    expect(await bench.hf.workers.stop(first.id, { by: "ada" })).toEqual({ name: "one" });
    const [info] = (await bench.hf.workers.list()).workers;
    expect(info).toMatchObject({ stopAskedAt: expect.any(Date), drainAskedBy: "ada" });
    expect(await caught(bench.hf.workers.resume(first.id))).toMatchObject({ code: "HOLDFAST_STATE_CONFLICT" });
    held.release();
    await stopped;
    expect(await ended(bench.hf, running.id)).toMatchObject({ state: "done", attempt: 1, claimCount: 1 });
    expect((await bench.hf.workers.list()).workers).toEqual([]);
    const { id } = await bench.hf.enqueue(kind, 1);
    const second = await bench.hf.work([kind]);
    expect(await ended(bench.hf, id)).toMatchObject({ state: "done" });
    await second.stop();
    // Stopped is stopped.
    await first.stop();
    expect(await caught(bench.hf.workers.stop(first.id))).toMatchObject({ code: "HOLDFAST_NOT_FOUND" });
  });

  test("what does not end within its grace is released, uncharged", async () => {
    const held = makeHeldKind({ attempts: 1 });
    const worker = await bench.hf.work([held.kind], { poll: "50ms", grace: "0s", abortGrace: "100ms" });
    const { id } = await bench.hf.enqueue(held.kind, 1);
    const { signal } = await held.started();
    const stopped = waitForEvent(bench.hf, "worker.stopped", () => true, { timeout: "15s" });
    await bench.hf.workers.stop(worker.id);
    await stopped;
    expect(signal.reason).toMatchObject({ why: "shutdown" });
    expect(await bench.hf.jobs.get(id)).toMatchObject({ state: "pending", attempt: 0 });
    await bench.hf.jobs.cancel(id);
    held.release();
  });
});
