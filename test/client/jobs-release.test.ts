import { describe, expect, test } from "vitest";
import { defineBatch } from "#src/index.js";
import { uuidv7 } from "#src/shared/uuid.js";
import { ended, nextOf } from "../support/events.ts";
import { aborted, caught, makeGate, makeHeldKind, makeKind, uniqueName } from "../support/make.ts";
import { TIERS, useHoldfast } from "../support/open-test.ts";

describe.each(TIERS)("release, %s", (tier) => {
  const bench = useHoldfast(tier);

  test("a running job is taken away: its handler is told, what it says is refused, and it runs again uncharged", async () => {
    const results: unknown[] = [];
    const runs: string[] = [];
    const held = makeHeldKind<string>({
      attempts: 1,
      then: async (job): Promise<string> => {
        await job.transaction(async () => {}).catch((error: unknown) => results.push((error as Error).name));
        return `run ${runs.indexOf(job.token) + 1}`;
      },
    });
    const worker = await bench.hf.work([held.kind], { poll: "50ms" });
    const { id } = await bench.hf.enqueue(held.kind, "x");
    const { signal } = await held.started();
    const lost = nextOf(bench.hf, "lease.lost", id);
    await bench.hf.jobs.release(id);
    await aborted(signal);
    expect(signal.reason).toMatchObject({ name: "JobAborted", why: "lease-lost" });
    await lost;
    // Without waiting for the first, which has not ended.
    runs.push(...[await held.started(), await held.started(2)].map(({ token }) => token));
    expect(held.runs[1]).toMatchObject({ attempt: 1, lastError: null });
    held.release();
    expect(await ended(bench.hf, id)).toMatchObject({ state: "done", result: "run 2", attempt: 1, claimCount: 2 });
    expect(results).toEqual(["LeaseLost"]);
    expect(await bench.hf.jobs.attempts(id)).toEqual([]);
    await worker.stop();
    expect(await bench.hf.workers.list()).toEqual({ workers: [], orphans: [] });
  });

  test("what was enqueued to it while it ran is what runs next", async () => {
    const held = makeHeldKind<string>();
    const worker = await bench.hf.work([held.kind], { concurrency: 1, poll: "50ms" });
    const { id } = await bench.hf.enqueue(held.kind, "old", { coalesce: "c" });
    await held.started();
    expect(await bench.hf.enqueue(held.kind, "new", { coalesce: "c" })).toMatchObject({ id, coalesced: true });
    await bench.hf.jobs.release(id);
    expect(await bench.hf.jobs.get(id)).toMatchObject({ state: "pending", payload: "new", attempt: 0 });
    held.release();
    expect(await ended(bench.hf, id)).toMatchObject({ state: "done", payload: "new", attempt: 1, claimCount: 2 });
    expect(held.runs.map(({ payload }) => payload)).toEqual(["old", "new"]);
    await worker.stop();
  });

  test("twice is once; what does not run is refused with its state", async () => {
    const held = makeHeldKind();
    const waiting = await bench.hf.enqueue(makeKind(), 1, { delay: "1h" });
    expect(await caught(bench.hf.jobs.release(waiting.id))).toMatchObject({
      code: "HOLDFAST_STATE_CONFLICT",
      message: `Job ${waiting.id} is pending and cannot be released.`,
    });
    expect(await caught(bench.hf.jobs.release(uuidv7()))).toMatchObject({ code: "HOLDFAST_NOT_FOUND" });
    expect(await caught(bench.hf.jobs.release("x"))).toMatchObject({ code: "HOLDFAST_OPTION_INVALID" });
    const worker = await bench.hf.work([held.kind], { concurrency: 1, poll: "50ms" });
    const { id } = await bench.hf.enqueue(held.kind, 1);
    await held.started();
    // Its only slot is taken until the handler ends: the job stays pending.
    await bench.hf.jobs.release(id);
    expect(await bench.hf.jobs.get(id)).toMatchObject({ state: "pending", attempt: 0 });
    expect(await caught(bench.hf.jobs.release(id))).toMatchObject({ code: "HOLDFAST_STATE_CONFLICT" });
    held.release();
    expect(await ended(bench.hf, id)).toMatchObject({ state: "done", claimCount: 2 });
    await worker.stop();
  });

  test("one that was to be cancelled ends cancelled; an item of a batch keeps its place and runs again", async () => {
    const held = makeHeldKind();
    const gate = makeGate();
    let runs = 0;
    const batch = defineBatch<number>(uniqueName("batch"), {
      attempts: 1,
      async run() {
        if ((runs += 1) === 1) await gate.opened;
      },
    });
    const worker = await bench.hf.work([held.kind, batch], { poll: "50ms" });
    const { id } = await bench.hf.enqueue(held.kind, 1);
    await held.started();
    await bench.hf.jobs.cancel(id);
    await bench.hf.jobs.release(id);
    await bench.hf.janitor.run("expire-leases");
    expect(await ended(bench.hf, id)).toMatchObject({ state: "cancelled" });
    held.release();

    const made = await bench.hf.batches.create(batch, [1]);
    await expect.poll(() => runs).toBe(1);
    const { items } = await bench.hf.batches.items(made.id);
    await bench.hf.jobs.release(items[0]!.jobId!);
    expect(await bench.hf.batches.wait(made.id, { timeout: "15s" })).toMatchObject({
      state: "done",
      counts: { done: 1, error: 0 },
    });
    expect(runs).toBe(2);
    gate.open();
    await worker.stop();
  });
});

describe("from another process", () => {
  const bench = useHoldfast("server");

  test("the handler is told by a notification", async () => {
    const elsewhere = await bench.another();
    const held = makeHeldKind();
    const worker = await bench.hf.work([held.kind], { poll: "50ms" });
    const { id } = await bench.hf.enqueue(held.kind, 1);
    const { signal } = await held.started();
    await elsewhere.jobs.release(id);
    await aborted(signal);
    expect(signal.reason).toMatchObject({ why: "lease-lost" });
    held.release();
    expect(await ended(bench.hf, id)).toMatchObject({ state: "done", attempt: 1 });
    await worker.stop();
  });
});
