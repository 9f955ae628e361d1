// Items of a batch whose queue is paused: a worker claims each at most once more, and then it is set aside until the resume.
import { describe, expect, test } from "vitest";
import { defineBatch } from "#src/job/define-batch.js";
import { makeKind, uniqueName } from "../support/make.ts";
import { soon } from "../support/soon.ts";
import { TIERS, useHoldfast } from "../support/open-test.ts";

describe.each(TIERS)("on the %s tier", (tier) => {
  const bench = useHoldfast(tier);
  const rowsOf = async (batchId: string): Promise<{ hold: number; claim_count: number; attempt: number }[]> => {
    const text = "select hold, claim_count, attempt from holdfast.jobs where batch_id = $1 order by batch_seq";
    return (await bench.db.query<{ hold: number; claim_count: number; attempt: number }>(text, [batchId])).rows;
  };

  test("items of a batch in a paused queue are set aside once, and run when it is resumed", async () => {
    const { hf } = bench;
    const queue = uniqueName("queue");
    let runs = 0;
    const kind = defineBatch<number>(uniqueName("batch"), { queue, concurrency: 4, run: () => void (runs += 1) });
    await hf.queues.pause(queue);
    const { id } = await hf.batches.create(kind, [1, 2, 3, 4, 5]);
    const worker = await hf.work([kind], { poll: "50ms" });
    const aside = { hold: 5, claim_count: 1, attempt: 0 };
    await soon(() => rowsOf(id)).toEqual([aside, aside, aside, aside]);
    // Nobody walks past them again.
    await new Promise((resolve) => setTimeout(resolve, 500));
    expect(await rowsOf(id)).toEqual([aside, aside, aside, aside]);
    expect(runs).toBe(0);
    await hf.queues.resume(queue);
    expect(await hf.batches.wait(id, { timeout: "20s" })).toMatchObject({ state: "done", counts: { done: 5 } });
    expect(runs).toBe(5);
    await worker.stop();
  });

  test("paused twice, by its queue and as a batch, an item waits for both", async () => {
    const { hf } = bench;
    const queue = uniqueName("queue");
    let runs = 0;
    const kind = defineBatch<number>(uniqueName("batch"), { queue, concurrency: 1, run: () => void (runs += 1) });
    await hf.queues.pause(queue);
    const { id } = await hf.batches.create(kind, [1, 2]);
    const worker = await hf.work([kind], { poll: "50ms" });
    await soon(() => rowsOf(id)).toMatchObject([{ hold: 5 }]);
    await hf.batches.pause(id);
    await hf.queues.resume(queue);
    expect(await rowsOf(id)).toMatchObject([{ hold: 7 }]);
    expect(runs).toBe(0);
    await hf.batches.resume(id);
    expect(await hf.batches.wait(id, { timeout: "20s" })).toMatchObject({ counts: { done: 2 } });
    await worker.stop();
  });

  test("a suspect item in a paused queue keeps nobody else waiting", async () => {
    const { hf } = bench;
    const queue = uniqueName("queue");
    const kind = defineBatch<number>(uniqueName("batch"), { queue, concurrency: 1, run: () => undefined });
    const other = makeKind({ queue: uniqueName("other") });
    await hf.queues.pause(queue);
    const { id } = await hf.batches.create(kind, [1]);
    // As an expiry leaves it after its worker died.
    await bench.db.query("update holdfast.jobs set hold = 2, started_at = now() where batch_id = $1", [id]);
    const worker = await hf.work([kind, other], { poll: "50ms" });
    await soon(() => rowsOf(id)).toMatchObject([{ hold: 6, claim_count: 1 }]);
    const job = await hf.enqueue(other, 1);
    expect(await hf.jobs.wait(job.id, { timeout: "15s" })).toMatchObject({ state: "done" });
    expect(await rowsOf(id)).toMatchObject([{ hold: 6, claim_count: 1 }]);
    await hf.queues.resume(queue);
    expect(await hf.batches.wait(id, { timeout: "20s" })).toMatchObject({ counts: { done: 1 } });
    await worker.stop();
  });
});
