// Pause, resume, cancel, retry what failed, delete: at any time, from anywhere, twice.
import { describe, expect, test } from "vitest";
import { NotFound, StateConflict } from "#src/errors.js";
import { type AnyBatchKind, defineBatch } from "#src/job/define-batch.js";
import type { ItemContext } from "#src/job/item.js";
import { RetryAfter } from "#src/job/outcome.js";
import { MOST_PARKED } from "#src/store/batches/advance.js";
import { collect } from "../support/events.ts";
import { aborted, caught, makeGate, uniqueName } from "../support/make.ts";
import { soon } from "../support/soon.ts";
import { TIERS, useHoldfast } from "../support/open-test.ts";

const numbers = (count: number): number[] => Array.from({ length: count }, (_, index) => index + 1);

interface Held {
  kind: AnyBatchKind;
  runs: ItemContext<number>[];
  release(): void;
  started(count: number): Promise<void>;
}

/** Items that wait until they are released; an aborted one throws. */
function heldBatch(concurrency: number, then: (item: ItemContext<number>) => unknown = () => undefined): Held {
  const gate = makeGate();
  const runs: ItemContext<number>[] = [];
  const waiters: { count: number; go(): void }[] = [];
  const kind = defineBatch<number>(uniqueName("held"), {
    concurrency,
    attempts: 2,
    backoff: ["10ms"],
    async run(item) {
      runs.push(item);
      for (const waiter of waiters) if (runs.length >= waiter.count) waiter.go();
      await Promise.race([gate.opened, aborted(item.signal)]);
      item.signal.throwIfAborted();
      await then(item);
    },
  });
  return {
    kind,
    runs,
    release: () => gate.open(),
    started: (count) =>
      runs.length >= count ? Promise.resolve() : new Promise((go) => void waiters.push({ count, go: () => go() })),
  };
}

describe.each(TIERS)("on the %s tier", (tier) => {
  const bench = useHoldfast(tier);

  test("a paused batch starts nothing, lets what runs finish, and goes on when it is resumed", async () => {
    const { hf } = bench;
    const held = heldBatch(2);
    const worker = await hf.work([held.kind]);
    const { id } = await hf.batches.create(held.kind, numbers(6));
    await held.started(2);
    await soon(async () => (await hf.batches.get(id))!.state).toBe("running");
    const paused = await hf.batches.pause(id);
    expect(paused).toMatchObject({ state: "paused", counts: { running: 2, pending: 4 } });
    expect(await hf.batches.pause(id)).toMatchObject({ state: "paused" });
    held.release();
    await soon(async () => (await hf.batches.get(id))!.counts["done"]).toBe(2);
    // Long enough for a claim, if there were anything to claim.
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(held.runs).toHaveLength(2);
    expect(await hf.batches.resume(id)).toMatchObject({ state: "running" });
    expect(await hf.batches.wait(id, { timeout: "20s" })).toMatchObject({ state: "done", counts: { done: 6 } });
    await expect(hf.batches.pause(id)).rejects.toThrow(StateConflict);
    await expect(hf.batches.resume(id)).rejects.toThrow(StateConflict);
    await worker.stop();
  });

  test("a batch that nobody runs is queued, and is paused, resumed and cancelled all the same", async () => {
    const { hf } = bench;
    const kind = defineBatch<number>(uniqueName("batch"), { run: () => undefined });
    const { id } = await hf.batches.create(kind, numbers(3));
    expect(await hf.batches.get(id)).toMatchObject({ state: "queued", counts: { pending: 3, running: 0 } });
    await hf.batches.pause(id);
    expect(await hf.batches.resume(id)).toMatchObject({ state: "queued" });
    const cancelled = await hf.batches.cancel(id);
    expect(cancelled).toMatchObject({ state: "cancelled", counts: { cancelled: 3, pending: 0 }, ended: 3 });
    expect(cancelled.finishedAt).not.toBeNull();
    expect((await hf.batches.items(id)).items.map((item) => item.state)).toEqual([
      "cancelled",
      "cancelled",
      "cancelled",
    ]);
    expect((await hf.batches.items(id, { state: "cancelled" })).items).toHaveLength(3);
    expect((await hf.batches.items(id, { state: "pending" })).items).toHaveLength(0);
  });

  test("a cancel ends what waits at once, tells what runs, and publishes nothing that comes later", async () => {
    const { hf } = bench;
    const gate = makeGate();
    const signals: string[] = [];
    const starts: number[] = [];
    const kind = defineBatch<number, number, "saved">(uniqueName("batch"), {
      concurrency: 2,
      outcomes: { saved: {} },
      async run(item) {
        starts.push(item.seq);
        await aborted(item.signal);
        signals.push((item.signal.reason as { why: string }).why);
        await gate.opened;
        // It does not heed the cancel.
        return { outcome: "saved" as const, result: "late" };
      },
    });
    const worker = await hf.work([kind]);
    const { id } = await hf.batches.create(kind, numbers(1_000));
    await soon(() => starts.length).toBe(2);
    const asked = Date.now();
    const cancelled = await hf.batches.cancel(id);
    expect(cancelled).toMatchObject({ state: "cancelled", counts: { cancelled: 998, running: 2 } });
    await soon(() => signals).toEqual(["cancelled", "cancelled"]);
    expect(Date.now() - asked).toBeLessThan(1_000);
    expect(await hf.batches.cancel(id)).toMatchObject({ state: "cancelled" });
    await expect(hf.batches.resume(id)).rejects.toThrow(StateConflict);
    await expect(hf.batches.retryFailed(id)).rejects.toThrow(StateConflict);
    await expect(hf.batches.delete(id)).rejects.toThrow(StateConflict);
    gate.open();
    const ended = await hf.batches.wait(id, { timeout: "20s" });
    expect(ended).toMatchObject({ state: "cancelled", counts: { cancelled: 1_000, saved: 0 } });
    expect((await hf.batches.item(id, starts[0]!))!).toMatchObject({ state: "cancelled", result: null });
    expect(starts).toHaveLength(2);
    await worker.stop();
  });

  test("what failed is retried with a full budget, and the batch is done a second time", async () => {
    const { hf } = bench;
    let isBroken = true;
    const kind = defineBatch<number>(uniqueName("batch"), {
      concurrency: 5,
      attempts: 1,
      run(item) {
        if (isBroken && item.payload % 2 === 0) throw new Error("broken");
      },
    });
    const worker = await hf.work([kind]);
    const { id } = await hf.batches.create(kind, numbers(20));
    expect(await hf.batches.wait(id, { timeout: "20s" })).toMatchObject({ counts: { done: 10, error: 10 } });
    expect(await hf.batches.errors(id)).toMatchObject([{ count: 10 }]);
    isBroken = false;
    const { retried, batch } = await hf.batches.retryFailed(id);
    expect(retried).toBe(10);
    expect(batch.counts["error"]).toBe(0);
    const done = await hf.batches.wait(id, { timeout: "20s" });
    expect(done).toMatchObject({ state: "done", counts: { done: 20, error: 0 }, completions: 2 });
    expect(await hf.batches.errors(id)).toEqual([]);
    expect(await hf.batches.retryFailed(id)).toMatchObject({ retried: 0, batch: { state: "done" } });
    expect((await hf.batches.item(id, 2))!.attempt).toBe(1);
    await worker.stop();
  });

  test("one of those that failed is retried by its place, and the others stay as they are", async () => {
    const { hf } = bench;
    let isBroken = true;
    const kind = defineBatch<number>(uniqueName("batch"), {
      attempts: 1,
      run() {
        if (isBroken) throw new Error("broken");
      },
    });
    const worker = await hf.work([kind]);
    const { id } = await hf.batches.create(kind, numbers(4));
    expect(await hf.batches.wait(id, { timeout: "20s" })).toMatchObject({ counts: { error: 4 } });
    isBroken = false;
    // One that does not exist, and one that is asked for twice, change nothing.
    expect(await hf.batches.retryFailed(id, { seqs: [3, 3, 99] })).toMatchObject({ retried: 1 });
    expect(await hf.batches.wait(id, { timeout: "20s" })).toMatchObject({
      state: "done",
      counts: { done: 1, error: 3 },
    });
    expect((await hf.batches.item(id, 3))!.state).toBe("done");
    expect(await hf.batches.retryFailed(id, { seqs: [3] })).toMatchObject({ retried: 0, batch: { state: "done" } });
    expect(await hf.batches.retryFailed(id, { seqs: [] })).toMatchObject({ retried: 0, batch: { state: "done" } });
    await expect(hf.batches.retryFailed(id, { seqs: [0] })).rejects.toThrow("place is 0");
    // Nothing was retried, so nothing was done once more.
    expect((await hf.batches.get(id))!.completions).toBe(2);
    expect(await hf.batches.retryFailed(id)).toMatchObject({ retried: 3 });
    expect(await hf.batches.wait(id, { timeout: "20s" })).toMatchObject({ counts: { done: 4, error: 0 } });
    await worker.stop();
  });

  test("a deleted batch is gone, also when it is deleted twice; one that goes on is not", async () => {
    const { hf } = bench;
    const kind = defineBatch<number>(uniqueName("batch"), { run: () => undefined });
    const { id } = await hf.batches.create(kind, numbers(2));
    await expect(hf.batches.delete(id)).rejects.toThrow(StateConflict);
    await hf.batches.cancel(id);
    await hf.batches.delete(id);
    await hf.batches.delete(id);
    expect(await hf.batches.get(id)).toBeUndefined();
    expect(await caught(hf.batches.pause(id))).toBeInstanceOf(NotFound);
    expect((await hf.batches.list({ kind: kind.kind })).batches).toEqual([]);
  });

  test("one item is cancelled by its job, waiting or running, and its slot goes on", async () => {
    const { hf } = bench;
    const held = heldBatch(1);
    const { id } = await hf.batches.create(held.kind, numbers(3));
    const first = (await hf.batches.item(id, 1))!;
    expect(await hf.jobs.cancel(first.jobId!)).toBe("cancelled");
    expect(await hf.batches.get(id)).toMatchObject({ counts: { cancelled: 1, pending: 2 } });
    const worker = await hf.work([held.kind]);
    await held.started(1);
    const second = (await hf.batches.item(id, 2))!;
    expect(second.state).toBe("running");
    expect(await hf.jobs.cancel(second.jobId!)).toBe("requested");
    await held.started(2);
    held.release();
    expect(await hf.batches.wait(id, { timeout: "20s" })).toMatchObject({
      state: "done",
      counts: { cancelled: 2, done: 1 },
    });
    await worker.stop();
  });

  test("a stopped worker gives items back without using an attempt; while paused they wait", async () => {
    const { hf } = bench;
    const held = heldBatch(2);
    const worker = await hf.work([held.kind], { grace: "0s", abortGrace: "500ms" });
    const { id } = await hf.batches.create(held.kind, numbers(3));
    await held.started(2);
    await hf.batches.pause(id);
    await worker.stop();
    expect(await hf.batches.get(id)).toMatchObject({ state: "paused", counts: { pending: 3, running: 0 } });
    const again = await hf.work([held.kind]);
    await hf.batches.resume(id);
    held.release();
    expect(await hf.batches.wait(id, { timeout: "20s" })).toMatchObject({ counts: { done: 3 } });
    expect((await hf.batches.items(id)).items.map((item) => item.attempt)).toEqual([1, 1, 1]);
    await again.stop();
  });

  test("an item that a person releases while its batch is paused waits for the resume, and its old run is refused", async () => {
    const { hf } = bench;
    const held = heldBatch(1);
    const worker = await hf.work([held.kind], { poll: "50ms", concurrency: 5 });
    const { id } = await hf.batches.create(held.kind, numbers(2));
    await held.started(1);
    await hf.batches.pause(id);
    const { jobId } = (await hf.batches.item(id, 1))!;
    const lost = collect(hf, "lease.lost");
    await hf.jobs.release(jobId!);
    expect(await hf.batches.get(id)).toMatchObject({ state: "paused", counts: { pending: 2, running: 0 } });
    await soon(() => lost.events.map((event) => event.jobId)).toEqual([jobId]);
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(held.runs).toHaveLength(1);
    await expect(hf.jobs.release(jobId!)).rejects.toThrow("is pending and cannot be released");
    held.release();
    await hf.batches.resume(id);
    expect(await hf.batches.wait(id, { timeout: "20s" })).toMatchObject({ counts: { done: 2 } });
    expect((await hf.batches.items(id)).items.map((item) => item.attempt)).toEqual([1, 1]);
    expect(held.runs.map((run) => run.seq)).toEqual([1, 1, 2]);
    await worker.stop();
  });

  test("an item that a person releases while its batch goes on keeps its slot and runs again", async () => {
    const { hf } = bench;
    const held = heldBatch(1);
    const worker = await hf.work([held.kind], { poll: "50ms", concurrency: 5 });
    const { id } = await hf.batches.create(held.kind, numbers(2));
    await held.started(1);
    await hf.jobs.release((await hf.batches.item(id, 1))!.jobId!);
    await held.started(2);
    held.release();
    expect(await hf.batches.wait(id, { timeout: "20s" })).toMatchObject({ counts: { done: 2 } });
    expect(held.runs.map((run) => run.seq)).toEqual([1, 1, 2]);
    await worker.stop();
  });

  test("an item that waits for its retry keeps no slot from the others", async () => {
    const { hf } = bench;
    const order: string[] = [];
    const kind = defineBatch<number>(uniqueName("batch"), {
      concurrency: 1,
      attempts: 2,
      backoff: ["400ms"],
      run(item) {
        order.push(`${item.seq}.${item.attempt}`);
        if (item.seq === 1 && item.attempt === 1) throw new Error("later");
      },
    });
    const worker = await hf.work([kind]);
    const { id } = await hf.batches.create(kind, numbers(5));
    await hf.batches.wait(id, { timeout: "20s" });
    expect(order).toEqual(["1.1", "2.1", "3.1", "4.1", "5.1", "1.2"]);
    await worker.stop();
  });
});

describe("when thousands of items wait for a retry", () => {
  const bench = useHoldfast("server");

  test("nothing new is begun, and a cancel ends them all in one bounded step", async () => {
    const { hf } = bench;
    const [items, slots] = [MOST_PARKED + 1_500, 500];
    const kind = defineBatch<number>(uniqueName("failing"), {
      concurrency: slots,
      run: () => Promise.reject(new RetryAfter("1h", "not now")),
    });
    const { id } = await hf.batches.create(kind, numbers(items));
    // As if so many had failed before: running them would take longer than everything else here.
    await bench.db.query(
      `insert into holdfast.jobs (id, kind, queue, rank, run_at, created_at, max_attempts, attempt, claim_count, payload,
         batch_id, batch_seq, hold)
       select gen_random_uuid(), b.kind, b.queue, b.rank, now() + interval '1 hour', now(), 3, 1, 1,
         jsonb_build_object('batch', b.id, 'seq', i.seq, 'bounces', 0, 'item', i.payload), b.id, i.seq, 7
       from holdfast.batches b join holdfast.batch_items i on i.batch_id = b.id
       where b.id = $1 and i.seq > $2::integer and i.seq <= $2::integer + $3::integer`,
      [id, slots, MOST_PARKED],
    );
    await bench.db.query(
      `update holdfast.batch_log set taken = taken + $2::integer, parked = $2 where batch_id = $1
         and n = (select max(n) from holdfast.batch_log where batch_id = $1)`,
      [id, MOST_PARKED],
    );
    const where = async (): Promise<{ parked: number; slots: number }> => {
      const { rows } = await bench.db.query<{ parked: number; slots: number }>(
        `select count(*) filter (where hold = 7)::integer as parked, count(*) filter (where hold = 0)::integer as slots
         from holdfast.jobs where batch_id = $1`,
        [id],
      );
      return rows[0]!;
    };
    // Those in the slots have failed, and the slots are full of items that are not due: the batch has come to rest.
    let failed = 0;
    hf.on("job.retrying", () => (failed += 1));
    const worker = await hf.work([kind], { concurrency: slots });
    await soon(() => failed).toBeGreaterThanOrEqual(slots);
    // Long enough for another claim, if there were anything to claim.
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(failed).toBe(slots);
    expect(await where()).toEqual({ parked: MOST_PARKED, slots });
    expect((await hf.batches.get(id))!.counts).toMatchObject({ pending: items, running: 0 });
    await worker.stop();
    const { state, counts } = await hf.batches.cancel(id);
    expect({ state, cancelled: counts["cancelled"] }).toEqual({ state: "cancelled", cancelled: items });
    expect(await where()).toEqual({ parked: 0, slots: 0 });
  }, 60_000);
});
