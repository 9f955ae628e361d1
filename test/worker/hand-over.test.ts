// A job that is enqueued where a worker waits for it is stored and claimed in one commit, and is a job like any other.
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { makeEnqueuer } from "#src/client/enqueue.js";
import { DatabaseUnavailable } from "#src/errors.js";
import type { Statement, Store } from "#src/store/sql.js";
import { openTest, type TestHoldfast } from "#src/testing/index.js";
import type { Worker } from "#src/worker/worker.js";
import { ended } from "../support/events.ts";
import { makeHeldKind, makeKind } from "../support/make.ts";
import { type Bench, TIERS, useHoldfast } from "../support/open-test.ts";
import { soon } from "../support/soon.ts";
import { startTcpProxy, type TcpProxy } from "../support/tcp-proxy.ts";

const workers: Worker[] = [];
afterEach(async () => {
  await Promise.all(workers.splice(0).map((worker) => worker.stop()));
});

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

async function leaseOf(bench: Bench, token: string): Promise<unknown> {
  const { rows } = await bench.db.query("select light, job_ids from holdfast.leases where token = $1", [token]);
  return rows[0];
}

describe.each(TIERS)("a job enqueued where a worker waits, %s", (tier) => {
  const bench = useHoldfast(tier);

  /** A worker that has nothing to do and knows it. */
  async function idleWorker(kinds: Parameters<typeof bench.hf.work>[0], concurrency = 5): Promise<Worker> {
    const worker = await bench.hf.work(kinds, { concurrency });
    workers.push(worker);
    await pause(400);
    return worker;
  }

  test("is claimed by the commit that stores it", async () => {
    const held = makeHeldKind<{ b: number; a: number }>();
    await idleWorker([held.kind]);
    const { id, created } = await bench.hf.enqueue(held.kind, { b: 1, a: 2 });
    expect(created).toBe(true);
    // It has started already: nobody had to find it.
    expect(held.runs).toHaveLength(1);
    const [run] = held.runs;
    expect(run).toMatchObject({ id, attempt: 1, maxAttempts: 5, key: null, payload: { a: 2, b: 1 } });
    expect(Math.abs(run!.runAt.getTime() - (await bench.hf.clock.now()).getTime())).toBeLessThan(5_000);
    expect(await leaseOf(bench, run!.token)).toMatchObject({ job_ids: [id] });
    expect(await bench.hf.jobs.get(id)).toMatchObject({ state: "running", attempt: 1, claimCount: 1 });
    held.release();
    expect(await ended(bench.hf, id)).toMatchObject({ state: "done", attempt: 1, claimCount: 1 });
    expect(await leaseOf(bench, run!.token)).toBeUndefined();
  });

  test("fails, is tried again and sees the same payload", async () => {
    const seen: string[] = [];
    const kind = makeKind({
      backoff: ["10ms"],
      run(job) {
        seen.push(JSON.stringify(job.payload));
        if (job.attempt < 3) throw new Error(`try ${job.attempt}`);
        return "third";
      },
    });
    await idleWorker([kind]);
    const { id } = await bench.hf.enqueue(kind, { long: 1, a: { z: 1, y: [1.5, "x"] } });
    expect(await ended(bench.hf, id)).toMatchObject({ state: "done", attempt: 3, claimCount: 3, result: "third" });
    expect(new Set(seen).size).toBe(1);
    expect(await bench.hf.jobs.attempts(id)).toHaveLength(2);
  });

  test("can use everything a run has", async () => {
    const kind = makeKind<null>({
      async run(job) {
        await job.progress(1, 2);
        await job.step("once", async (tx) => void (await tx.query("select 1")));
        await job.transaction((tx) => job.complete(tx, "inside"));
      },
    });
    await idleWorker([kind]);
    const { id } = await bench.hf.enqueue(kind, null);
    expect(await ended(bench.hf, id)).toMatchObject({ state: "done", result: "inside", progress: { done: 1 } });
  });

  test("can be cancelled while it runs", async () => {
    const held = makeHeldKind<null>();
    await idleWorker([held.kind]);
    const { id } = await bench.hf.enqueue(held.kind, null);
    expect(await bench.hf.jobs.cancel(id)).toBe("requested");
    expect(held.runs[0]!.signal.aborted).toBe(true);
    held.release();
    await ended(bench.hf, id);
  });

  test("is not if there is no slot, and has its turn afterwards", async () => {
    const held = makeHeldKind<number>();
    await idleWorker([held.kind], 1);
    const first = await bench.hf.enqueue(held.kind, 1);
    const second = await bench.hf.enqueue(held.kind, 2);
    expect(await bench.hf.jobs.get(second.id)).toMatchObject({ state: "pending", claimCount: 0 });
    held.release();
    await ended(bench.hf, first.id);
    await ended(bench.hf, second.id);
    expect(held.runs.map((run) => run.payload)).toEqual([1, 2]);
  });

  test("does not overtake what waits", async () => {
    const order: number[] = [];
    const kind = makeKind<number>({
      async run(job) {
        order.push(job.payload);
        await pause(5);
      },
    });
    await bench.hf.enqueueMany(
      kind,
      Array.from({ length: 30 }, (_, payload) => ({ payload })),
    );
    workers.push(await bench.hf.work([kind], { concurrency: 1 }));
    for (let payload = 30; payload < 60; payload++) {
      await bench.hf.enqueue(kind, payload);
      await pause(4);
    }
    for (let n = 0; n < 500 && order.length < 60; n++) await pause(20);
    expect(order).toEqual(Array.from({ length: 60 }, (_, n) => n));
  });

  test("that is delayed, keyed, grouped or for another kind is stored as ever", async () => {
    const held = makeHeldKind<null>();
    const other = makeKind();
    await idleWorker([held.kind]);
    const later = await bench.hf.enqueue(held.kind, null, { delay: "1h" });
    const elsewhere = await bench.hf.enqueue(other, null);
    expect(held.runs).toHaveLength(0);
    expect(await bench.hf.jobs.get(later.id)).toMatchObject({ state: "pending", claimCount: 0 });
    expect(await bench.hf.jobs.get(elsewhere.id)).toMatchObject({ state: "pending", claimCount: 0 });
    const keyed = await bench.hf.enqueue(held.kind, null, { key: "k" });
    await held.started();
    expect(held.runs[0]!.id).toBe(keyed.id);
    held.release();
    await ended(bench.hf, keyed.id);
  });

  test("by many callers at once is run once each", async () => {
    const runs = new Map<number, number>();
    const kind = makeKind<number>({ run: (job) => void runs.set(job.payload, (runs.get(job.payload) ?? 0) + 1) });
    await idleWorker([kind], 20);
    const jobs = await Promise.all(Array.from({ length: 500 }, (_, n) => bench.hf.enqueue(kind, n)));
    for (const { id } of jobs) expect(await ended(bench.hf, id)).toMatchObject({ state: "done", claimCount: 1 });
    expect(runs.size).toBe(500);
    expect([...runs.values()].every((count) => count === 1)).toBe(true);
  });

  test("while the worker stops is run, or left to others", async () => {
    const kind = makeKind<number>();
    const worker = await idleWorker([kind]);
    const jobs = Array.from({ length: 50 }, (_, n) => bench.hf.enqueue(kind, n));
    await worker.stop();
    const stored = await Promise.all(jobs);
    workers.push(await bench.hf.work([kind], { concurrency: 5 }));
    for (const { id } of stored) expect(await ended(bench.hf, id)).toMatchObject({ state: "done", attempt: 1 });
  });
});

describe("the answer to a hand-over is lost (server)", () => {
  const bench = useHoldfast("server");
  let proxy: TcpProxy;
  let hf: TestHoldfast;
  beforeAll(async () => {
    proxy = await startTcpProxy(bench.url);
    hf = await openTest({ database: proxy.through(bench.url) });
  });
  afterEach(() => proxy.onData(undefined));
  afterAll(async () => {
    await hf?.close();
    await proxy?.close();
  });

  test("it was stored: it is one job, and the worker that has it runs it", async () => {
    let runs = 0;
    const kind = makeKind<null>({ lease: "1m", run: () => void (runs += 1) });
    workers.push(await hf.work([kind], { concurrency: 5 }));
    await pause(200);
    const lost = proxy.loseReplyTo("insert_taken");
    const enqueuing = hf.enqueue(kind, null);
    await lost;
    const { id, created } = await enqueuing;
    expect(created).toBe(true);
    // Long before its lease would run out.
    expect(await ended(bench.hf, id)).toMatchObject({ state: "done", claimCount: 1, attempt: 1 });
    expect(runs).toBe(1);
  });

  test("it was not stored: it is sent again", async () => {
    let cuts = 0;
    const kind = makeKind<null>();
    workers.push(await hf.work([kind], { concurrency: 5 }));
    await pause(200);
    proxy.onData(({ direction, data }) =>
      direction === "to-server" && data.includes("insert_taken") && ++cuts === 1 ? "cut" : "pass",
    );
    const { id } = await hf.enqueue(kind, null);
    expect(await ended(bench.hf, id)).toMatchObject({ state: "done", claimCount: 1, attempt: 1 });
    expect(cuts).toBe(1);
  });

  test("it was stored, and even done before it is sent again: it is one job", async () => {
    let runs = 0;
    const kind = makeKind<null>({ lease: "1m", run: () => void (runs += 1) });
    const worker = await bench.hf.work([kind], { concurrency: 5 });
    workers.push(worker);
    await pause(400);
    const { store } = bench;
    // The answer of the hand-over is lost; what is sent afterwards takes longer than the job itself.
    const slow: Store = {
      ...store,
      async query<Row>(statement: Statement, values?: readonly unknown[]) {
        const text = statement.textIn("holdfast");
        if (/insert_(alike|jobs)_/.test(text)) await soon(() => runs).toBe(1);
        const answer = await store.query<Row>(statement, values);
        if (text.includes("insert_taken_")) throw new DatabaseUnavailable("The answer is lost.", "Ask again.");
        return answer;
      },
    };
    const enqueuer = makeEnqueuer({
      store: slow,
      onEnqueued: () => {},
      onAnswered: () => {},
      offer: (name, count) => worker.offer(name, count),
      onTrouble: () => {},
    });
    const { id, created } = await enqueuer.enqueue(kind, null, {});
    expect(created).toBe(true);
    expect(await ended(bench.hf, id)).toMatchObject({ state: "done", claimCount: 1 });
    await pause(500);
    expect(runs).toBe(1);
    expect((await bench.hf.jobs.list({ kind: kind.kind })).jobs).toHaveLength(1);
  });
});
