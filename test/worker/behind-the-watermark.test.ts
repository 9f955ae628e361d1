// A job that becomes due behind the place where the last claim began is started within two seconds while the queue is
// saturated, and at once otherwise; with a notification and without one.
//
// Polling is switched off where it could hide a fault ("1m"), and what must not be heard of is written by a raw
// connection: no wake-up in the process, no NOTIFY.
import { Client } from "pg";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { setTimeout as after } from "node:timers/promises";
import type { EnqueueOptions } from "#src/client/new-job.js";
import type { JobKind } from "#src/job/define-job.js";
import type { TestHoldfast } from "#src/testing/index.js";
import type { Worker } from "#src/worker/worker.js";
import { ended, nextOf, times } from "../support/events.ts";
import { aborted, makeHeldKind, makeKind } from "../support/make.ts";
import { type Bench, useHoldfast } from "../support/open-test.ts";

const SOON_MS = 2_000;
/** Of a worker that polls once a minute and is told. */
const AT_ONCE_MS = 1_000;
const LATE = Array.from({ length: 3_000 }, () => ({ payload: "late", runAt: "2020-01-01T00:00:00Z" }));

/** Committed by somebody whom no worker hears. */
async function enqueueSilently(
  bench: Bench,
  kind: JobKind<string>,
  options: Omit<EnqueueOptions, "tx"> = {},
): Promise<string> {
  const client = new Client({ connectionString: bench.url });
  await client.connect();
  try {
    await client.query("begin");
    const { id } = await bench.hf.enqueue(kind, "silent", { ...options, tx: client });
    await client.query("commit");
    return id;
  } finally {
    await client.end();
  }
}

/** How a saturated worker is kept busy: many at once that take a moment, or one after the other that take none. */
const SHAPES = [
  { name: "five at once that wait a little", concurrency: 5, handlerMs: 5 },
  { name: "one at a time that take no time", concurrency: 1, handlerMs: 0 },
  { name: "fifty at once that take no time", concurrency: 50, handlerMs: 0 },
];

describe("saturated", () => {
  const bench = useHoldfast("server");
  let client: Client;
  let worker: Worker | undefined;

  beforeEach(async () => {
    client = new Client({ connectionString: bench.url });
    await client.connect();
  });
  afterEach(async () => {
    await worker?.stop();
    worker = undefined;
    await client.end();
    // What is left of the backlog would be in the next test's way.
    await bench.db.query("delete from holdfast.jobs where state = 'pending'");
  });

  interface Saturated {
    kind: JobKind<string>;
    /** When it was started, in milliseconds after now; the backlog must have lasted as long. */
    startOf(id: string): Promise<number>;
  }

  /** A worker with more to do than it can do: what is added behind its back has to compete. */
  async function saturate(shape: (typeof SHAPES)[number], hf: TestHoldfast = bench.hf): Promise<Saturated> {
    const kind = makeKind<string>({
      run: shape.handlerMs === 0 ? () => undefined : () => after(shape.handlerMs),
    });
    const feed = (count: number): Promise<unknown> =>
      bench.hf.enqueueMany(
        kind,
        Array.from({ length: count }, () => ({ payload: "backlog" })),
      );
    await feed(4_000);
    const started = new Set<string>();
    hf.on("job.claimed", ({ jobId }) => started.add(jobId));
    const isUnderWay = times(hf, "job.claimed", 300, (event) => event.kind === kind.kind);
    worker = await hf.work([kind], { concurrency: shape.concurrency, poll: "1s" });
    await isUnderWay;
    return {
      kind,
      async startOf(id) {
        // It may have been too quick for us.
        if (started.has(id)) return 0;
        const began = performance.now();
        const claimed = nextOf(hf, "job.claimed", id).then(() => performance.now() - began);
        // Kept full until it has started.
        while (!started.has(id)) {
          await Promise.race([claimed, feed(1_000)]);
          await Promise.race([claimed, after(200)]);
        }
        return await claimed;
      },
    };
  }

  describe.each(SHAPES)("by $name", (shape) => {
    test("a job whose transaction was committed late is started soon, without a notification", async () => {
      await client.query("begin");
      const late = { id: "" };
      const { kind, startOf } = await saturate({ ...shape });
      // Enqueued in a transaction before more of the backlog, committed after some of that has run.
      late.id = (await bench.hf.enqueue(kind, "late", { tx: client, runAt: "2020-01-01T00:00:00Z" })).id;
      await times(bench.hf, "job.claimed", 200, (event) => event.kind === kind.kind);
      await client.query("commit");
      expect(await startOf(late.id)).toBeLessThan(SOON_MS);
    });

    test("a job of a higher priority that nobody was told of is started soon", async () => {
      const { kind, startOf } = await saturate(shape);
      expect(await startOf(await enqueueSilently(bench, kind, { priority: 50 }))).toBeLessThan(SOON_MS);
      // And another one of the same priority, whose lane is known by now.
      expect(await startOf(await enqueueSilently(bench, kind, { priority: 50 }))).toBeLessThan(SOON_MS);
    });

    test("a job that another worker gave back is started soon", async () => {
      const other = await bench.another();
      const held = makeHeldKind<string>();
      const kind = { ...held.kind };
      // The other worker takes the oldest job of the kind, and is stopped while it runs it.
      const { id } = await bench.hf.enqueue(held.kind, "given back");
      const otherWorker = await other.work([held.kind], { concurrency: 1, grace: "0s", abortGrace: "0s" });
      const run = await held.started();
      const feed = Array.from({ length: 3_000 }, () => ({ payload: "backlog" }));
      await bench.hf.enqueueMany(kind, feed);
      const quick = { ...kind, run: shape.handlerMs === 0 ? () => undefined : () => after(shape.handlerMs) };
      const isUnderWay = times(bench.hf, "job.claimed", 200, (event) => event.kind === kind.kind);
      worker = await bench.hf.work([quick], { concurrency: shape.concurrency, poll: "1s" });
      await isUnderWay;
      const began = performance.now();
      const claimed = nextOf(bench.hf, "job.claimed", id);
      const stopping = otherWorker.stop();
      await aborted(run.signal);
      await claimed;
      expect(performance.now() - began).toBeLessThan(SOON_MS);
      held.release();
      await stopping;
      await other.close();
    });
  });

  test("thousands of jobs that were committed late do not trickle: they come before what is due after them", async () => {
    const { kind } = await saturate(SHAPES[2]!);
    const ran: boolean[] = [];
    bench.hf.on("job.claimed", ({ jobId }) => ran.push(late.has(jobId)));
    await client.query("begin");
    const late = new Set((await bench.hf.enqueueMany(kind, LATE, { tx: client })).map(({ id }) => id));
    await times(bench.hf, "job.claimed", 200, (event) => event.kind === kind.kind);
    await client.query("commit");
    ran.length = 0;
    // More of the backlog than a worker that trickles would need for all of them, many times over.
    const isOver = (): boolean => ran.filter(Boolean).length === LATE.length || ran.length > 60_000;
    while (!isOver()) {
      await bench.hf.enqueueMany(
        kind,
        Array.from({ length: 1_000 }, () => ({ payload: "backlog" })),
      );
      await after(20);
    }
    const last = ran.lastIndexOf(true);
    expect(ran.filter(Boolean)).toHaveLength(LATE.length);
    // Once the first have been found the others follow without a gap.
    expect(last - ran.indexOf(true)).toBeLessThan(2 * LATE.length);
  });

  test("a job behind all that has ended while somebody keeps an old snapshot is started soon", async () => {
    await client.query("begin isolation level repeatable read");
    await client.query("select count(*) from holdfast.jobs");
    const { kind, startOf } = await saturate(SHAPES[2]!);
    // What ended is dead, and stays in the index as long as the snapshot is kept.
    await times(bench.hf, "job.done", 3_000, (event) => event.kind === kind.kind);
    const silent = await enqueueSilently(bench, kind, { runAt: "2020-01-01T00:00:00Z" });
    expect(await startOf(silent)).toBeLessThan(SOON_MS);
    await client.query("commit");
  });

  test("a job that another process enqueues into the past is started soon, by its notification", async () => {
    const other = await bench.another();
    const { kind, startOf } = await saturate(SHAPES[0]!);
    const { id } = await other.enqueue(kind, "long due", { runAt: "2020-01-01T00:00:00Z" });
    expect(await startOf(id)).toBeLessThan(SOON_MS);
  });

  test("jobs enqueued after the clock went back are started soon", async () => {
    const { kind, startOf } = await saturate(SHAPES[0]!);
    await bench.hf.clock.rewind("1h");
    const took = await startOf(await enqueueSilently(bench, kind));
    await bench.hf.clock.advance("1h");
    expect(took).toBeLessThan(SOON_MS);
  });

  test("a job that failed is tried again soon after it is due", async () => {
    const failed: string[] = [];
    const kind = makeKind<string>({
      backoff: ["200ms"],
      async run(job) {
        await after(5);
        if (job.payload === "fails" && job.attempt === 1) throw new Error("once");
        if (job.payload === "fails") failed.push(job.id);
      },
    });
    worker = await bench.hf.work([kind], { concurrency: 5, poll: "1s" });
    let isOver = false;
    // The live edge: as much as it can do, always just now due.
    const feeding = (async () => {
      while (!isOver) {
        await bench.hf.enqueueMany(
          kind,
          Array.from({ length: 20 }, () => ({ payload: "live" })),
        );
        await after(20);
      }
    })();
    const { id } = await bench.hf.enqueue(kind, "fails");
    await nextOf(bench.hf, "job.retrying", id);
    const began = performance.now();
    await nextOf(bench.hf, "job.claimed", id);
    expect(performance.now() - began).toBeLessThan(SOON_MS + 200);
    isOver = true;
    await feeding;
    await ended(bench.hf, id);
    expect(failed).toEqual([id]);
  });
});

describe("idle", () => {
  const bench = useHoldfast("server");

  /** A worker whose watermark is at the live edge, and which does not look by itself. */
  async function idleWorker(poll: "1m" | "1s"): Promise<{ kind: JobKind<string>; worker: Worker }> {
    const kind = makeKind<string>();
    const worker = await bench.hf.work([kind], { poll });
    const rows = Array.from({ length: 50 }, () => ({ payload: "before" }));
    const done = times(bench.hf, "job.done", 50, (event) => event.kind === kind.kind);
    await bench.hf.enqueueMany(kind, rows);
    await done;
    return { kind, worker };
  }

  test("a job that was committed late is started as soon as somebody says so", async () => {
    const { kind, worker } = await idleWorker("1m");
    const client = new Client({ connectionString: bench.url });
    await client.connect();
    await client.query("begin");
    const { id } = await bench.hf.enqueue(kind, "late", { tx: client, runAt: "2020-01-01T00:00:00Z" });
    await client.query("commit");
    const began = performance.now();
    const claimed = nextOf(bench.hf, "job.claimed", id);
    bench.hf.wake();
    await claimed;
    expect(performance.now() - began).toBeLessThan(AT_ONCE_MS);
    await ended(bench.hf, id);
    await client.end();
    await worker.stop();
  });

  test("thousands of jobs that were committed late are started as fast as any others", async () => {
    const { kind, worker } = await idleWorker("1s");
    const client = new Client({ connectionString: bench.url });
    await client.connect();
    await client.query("begin");
    await bench.hf.enqueueMany(kind, LATE, { tx: client });
    const done = times(bench.hf, "job.done", LATE.length, (event) => event.kind === kind.kind);
    await client.query("commit");
    const began = performance.now();
    await done;
    // One look finds 64, and looks are half a second apart.
    expect(performance.now() - began).toBeLessThan(((LATE.length / 64) * 500) / 2);
    await client.end();
    await worker.stop();
  });

  test.each([{}, { runAt: "2020-01-01T00:00:00Z" }, { priority: 7 }, { priority: -7 }])(
    "a job that nobody was told of is found by looking: %j",
    async (options) => {
      const { kind, worker } = await idleWorker("1s");
      const claimed = times(bench.hf, "job.claimed", 1, (event) => event.kind === kind.kind);
      const id = await enqueueSilently(bench, kind, options);
      const began = performance.now();
      expect((await claimed).jobId).toBe(id);
      expect(performance.now() - began).toBeLessThan(SOON_MS);
      await ended(bench.hf, id);
      await worker.stop();
    },
  );

  test.each([{}, { runAt: "2020-01-01T00:00:00Z" }, { priority: 7 }])(
    "a job enqueued by another process is started by its notification: %j",
    async (options) => {
      const { kind, worker } = await idleWorker("1m");
      const other = await bench.another();
      const began = performance.now();
      const claimed = times(bench.hf, "job.claimed", 1, (event) => event.kind === kind.kind);
      // A worker that has just been busy looks by itself now and then, and would be about as quick.
      const heard = times(bench.hf, "wake.heard", 1, ({ from }) => from === "elsewhere").then(() => performance.now());
      const { id } = await other.enqueue(kind, "from afar", options);
      expect((await claimed).jobId).toBe(id);
      expect(performance.now() - began).toBeLessThan(AT_ONCE_MS);
      expect((await heard) - began).toBeLessThan(AT_ONCE_MS);
      await ended(bench.hf, id);
      await worker.stop();
    },
  );

  test("a job enqueued after the clock went back is started soon", async () => {
    const { kind, worker } = await idleWorker("1m");
    await bench.hf.clock.rewind("1h");
    const began = performance.now();
    const claimed = times(bench.hf, "job.claimed", 1, (event) => event.kind === kind.kind);
    const { id } = await bench.hf.enqueue(kind, "an hour ago");
    expect((await claimed).jobId).toBe(id);
    expect(performance.now() - began).toBeLessThan(AT_ONCE_MS);
    await ended(bench.hf, id);
    await bench.hf.clock.advance("1h");
    await worker.stop();
  });

  test("where LISTEN is lost, what another process enqueues is found by looking", async () => {
    const { kind, worker } = await idleWorker("1s");
    const other = await bench.another();
    // Those who listened are gone, and nobody comes in until it is over: what is connected stays so.
    const url = new URL(bench.url);
    const name = url.pathname.slice(1);
    url.pathname = "/postgres";
    const outside = new Client({ connectionString: url.href });
    await outside.connect();
    const listeners = async (what: string): Promise<number> => {
      const { rowCount } = await outside.query(
        `select ${what} from pg_stat_activity where datname = $1 and query ilike 'listen %'`,
        [name],
      );
      return rowCount!;
    };
    await outside.query(`alter database "${name}" allow_connections false`);
    try {
      expect(await listeners("pg_terminate_backend(pid)")).toBeGreaterThan(0);
      await expect.poll(() => listeners("pid")).toBe(0);
      const began = performance.now();
      const claimed = times(bench.hf, "job.claimed", 1, (event) => event.kind === kind.kind);
      const { id } = await other.enqueue(kind, "unheard");
      expect((await claimed).jobId).toBe(id);
      expect(performance.now() - began).toBeLessThan(SOON_MS);
      expect(await listeners("pid")).toBe(0);
      await ended(bench.hf, id);
    } finally {
      await outside.query(`alter database "${name}" allow_connections true`);
      await outside.end();
    }
    await worker.stop();
  });
});
