// The database goes away in the middle of long jobs, or its answer does: no process dies, no chunk is lost, no effect is
// there twice.
//
// HOLDFAST_LONG=1 makes the outage a minute long.
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { Client } from "pg";
import { defineJob } from "#src/job/define-job.js";
import type { JobContext } from "#src/job/handler.js";
import { openTest, type TestHoldfast } from "#src/testing/index.js";
import { ended } from "../support/events.ts";
import { assertSound } from "../support/assert-sound.ts";
import { caught, makeKind } from "../support/make.ts";
import { useHoldfast } from "../support/open-test.ts";
import { startPostgres } from "../support/postgres-server.mjs";
import { killChildren } from "../support/processes.ts";
import { startTcpProxy, type TcpProxy } from "../support/tcp-proxy.ts";
import { longChild, sleep } from "./scene.ts";

const OUTAGE_MS = process.env["HOLDFAST_LONG"] === "1" ? 60_000 : 8_000;

describe("PostgreSQL stops", () => {
  let server: Awaited<ReturnType<typeof startPostgres>>;
  let hf: TestHoldfast;
  beforeAll(async () => {
    server = await startPostgres();
    hf = await openTest({ database: server.url() });
  });
  afterAll(async () => {
    await killChildren();
    await hf?.close();
    await server?.remove();
  });

  /** A connection of its own for each question: those from before the outage are gone. */
  async function ask<Row>(text: string): Promise<Row[]> {
    const client = new Client({ connectionString: server.url() });
    await client.connect();
    try {
      return (await client.query(text)).rows as Row[];
    } finally {
      await client.end();
    }
  }

  test(
    `for ${OUTAGE_MS / 1_000} seconds in the middle of long jobs: no crash, no lost chunk, no double effect`,
    async () => {
      await ask("create table effects (seq serial, job uuid, item integer, attempt integer)");
      // Only enqueued here: the handler is the child's.
      const steady = defineJob<{ count: number; ms: number }>("steady", { run: () => undefined });
      const child = await longChild("steady.mjs", { name: "steady", url: server.url(), lease: "2s" });
      const count = 25;
      const jobs = await hf.enqueueMany(
        steady,
        [40, 60, 90].map((ms) => ({ payload: { count, ms } })),
      );
      for (const { id } of jobs) await child.until("saved", ({ job, item }) => job === id && item === 4);
      await server.stop("immediate");
      const stoppedAt = Date.now();
      await sleep(OUTAGE_MS);
      const heardMeanwhile = child.said.filter(({ what, at }) => what === "saved" && at > stoppedAt + 1_000);
      expect(heardMeanwhile).toEqual([]);
      await server.start();
      for (const { id } of jobs) {
        expect(await hf.jobs.wait(id, { timeout: "60s" })).toMatchObject({ state: "done", result: { by: "steady" } });
        const found = await ask<{ item: number }>(`select item from effects where job = '${id}' order by seq`);
        expect(found.map(({ item }) => item)).toEqual([...Array.from({ length: count }, (_, item) => item), -1]);
      }
      expect(child.isRunning).toBe(true);
      expect(child.errors).toBe("");
      // Otherwise nobody noticed.
      expect(child.said.some(({ what }) => what === "trouble")).toBe(true);
      await assertSound(server.url(), "holdfast");
    },
    OUTAGE_MS + 120_000,
  );
});

describe("an answer is lost (server)", () => {
  const bench = useHoldfast("server");
  let proxy: TcpProxy;
  let hf: TestHoldfast;
  beforeAll(async () => {
    await bench.db.script("create table effects (seq serial, job uuid, item text, attempt integer)");
    proxy = await startTcpProxy(bench.url);
    hf = await openTest({ database: proxy.through(bench.url) });
  });
  afterAll(async () => {
    await hf?.close();
    await proxy?.close();
  });
  afterEach(() => proxy.onData(undefined));

  const effectsOf = async (id: string): Promise<string[]> =>
    (await bench.db.query<{ item: string }>("select item from effects where job = $1 order by seq", [id])).rows.map(
      ({ item }) => item,
    );

  const INSERT = "insert into effects (job, item, attempt) values ($1, $2, $3)";
  const UNKNOWN = { code: "HOLDFAST_DATABASE_UNAVAILABLE", message: expect.stringContaining("outcome is unknown") };

  test.each([
    ["by place", undefined],
    ["by key", (item: string) => item],
  ])("of a chunk's COMMIT: saving it again in the same attempt changes nothing, %s", async (_, key) => {
    const errors: unknown[] = [];
    let runs = 0;
    const kind = makeKind<null>({
      attempts: 1,
      async run(job) {
        runs += 1;
        for await (const chunk of job.chunks("embed", ["a", "b", "c"], { size: 1, ...(key ? { key } : {}) })) {
          const save = (): Promise<void> =>
            chunk.save(async (tx) => {
              await tx.query(INSERT, [job.id, chunk.items[0], job.attempt]);
              // The next COMMIT is this one's.
              if (chunk.start === 1 && errors.length === 0) void proxy.loseReplyTo("commit");
            });
          if (chunk.start === 1) errors.push(await caught(save()));
          await save();
        }
      },
    });
    const { id } = await hf.enqueue(kind, null);
    const worker = await hf.work([kind]);
    expect(await ended(bench.hf, id)).toMatchObject({ state: "done", attempt: 1, progress: { done: 3 } });
    await worker.stop();
    expect(runs).toBe(1);
    expect(errors).toMatchObject([UNKNOWN]);
    expect(await effectsOf(id)).toEqual(["a", "b", "c"]);
  });

  test("of a chunk's COMMIT: the next attempt starts after it", async () => {
    let isLost = false;
    const kind = makeKind<null>({
      backoff: ["0s"],
      async run(job) {
        for await (const chunk of job.chunks("embed", ["a", "b", "c"], { size: 1 })) {
          await chunk.save(async (tx) => {
            await tx.query(INSERT, [job.id, chunk.items[0], job.attempt]);
            if (chunk.start !== 1 || isLost) return;
            isLost = true;
            void proxy.loseReplyTo("commit");
          });
        }
      },
    });
    const { id } = await hf.enqueue(kind, null);
    const worker = await hf.work([kind]);
    expect(await ended(bench.hf, id)).toMatchObject({ state: "done", attempt: 2 });
    await worker.stop();
    expect(await effectsOf(id)).toEqual(["a", "b", "c"]);
  });

  test("of a step's COMMIT: the step is not run again, in this attempt or the next", async () => {
    const results: unknown[] = [];
    const kind = makeKind<null>({
      backoff: ["0s"],
      async run(job) {
        const charge = (): Promise<string> =>
          job.step("charge", async (tx) => {
            await tx.query(INSERT, [job.id, "charge", job.attempt]);
            void proxy.loseReplyTo("commit");
            return `receipt of attempt ${job.attempt}`;
          });
        if (job.attempt === 1) results.push(await caught(charge()));
        results.push(await charge());
        if (job.attempt === 1) throw new Error("again");
      },
    });
    const { id } = await hf.enqueue(kind, null);
    const worker = await hf.work([kind]);
    expect(await ended(bench.hf, id)).toMatchObject({ state: "done", attempt: 2 });
    await worker.stop();
    expect(results).toMatchObject([UNKNOWN, "receipt of attempt 1", "receipt of attempt 1"]);
    expect(await effectsOf(id)).toEqual(["charge"]);
  });

  test("of the COMMIT with the completion: the job is done, though its handler fails", async () => {
    const kind = makeKind<null>({
      async run(job) {
        await job.transaction(async (tx) => {
          await tx.query(INSERT, [job.id, "complete", job.attempt]);
          await job.complete(tx, "complete");
          void proxy.loseReplyTo("commit");
        });
      },
    });
    const { id } = await hf.enqueue(kind, null);
    const worker = await hf.work([kind]);
    expect(await ended(bench.hf, id)).toMatchObject({ state: "done", attempt: 1, claimCount: 1, result: "complete" });
    await worker.stop();
    expect(await effectsOf(id)).toEqual(["complete"]);
    expect(await bench.hf.jobs.attempts(id)).toEqual([]);
  });

  test.each([
    ["chunks", (job: JobContext) => saveSlowly(job)],
    ["transactions", (job: JobContext) => writeSlowly(job)],
  ])("beats that cannot get through do not end a run whose %s can", async (_, work) => {
    const lost: string[] = [];
    const stopHearing = hf.on("lease.lost", ({ jobId }) => void lost.push(jobId));
    // From both sides: the heartbeat thread's, and those that the main thread sends until the thread is there.
    proxy.onData(({ direction, data }) => (direction === "to-server" && data.includes(".beat_") ? "cut" : "pass"));
    const kind = makeKind<null>({
      lease: "1500ms",
      async run(job) {
        await work(job);
        return job.signal.aborted;
      },
    });
    const { id } = await hf.enqueue(kind, null);
    const worker = await hf.work([kind]);
    expect(await ended(bench.hf, id)).toMatchObject({ state: "done", claimCount: 1, result: false });
    await worker.stop();
    stopHearing();
    expect(lost).toEqual([]);
  });

  async function saveSlowly(job: JobContext): Promise<void> {
    const items = Array.from({ length: 12 }, (_, item) => item);
    for await (const chunk of job.chunks("embed", items, { size: 1 })) {
      await sleep(300);
      await chunk.save();
    }
  }

  /** Each takes more than a third of the lease, and all of them together more than two. */
  async function writeSlowly(job: JobContext): Promise<void> {
    for (let n = 0; n < 5; n += 1) await job.transaction(() => sleep(700));
  }
});
