// A run that lost its lease can write nothing: not a result, not a chunk, not a step, not a counter, not a row of the
// user's. Also when the run that took over is in the same process, under the same worker.
import { afterEach, beforeAll, describe, expect, test } from "vitest";
import { Client } from "pg";
import { type Chunk, JobAborted, type JobContext } from "#src/job/handler.js";
import type { Worker } from "#src/worker/worker.js";
import { collect, ended, nextOf } from "../support/events.ts";
import { aborted, caught, makeGate, makeHeldKind, makeKind } from "../support/make.ts";
import { type Bench, TIERS, useHoldfast } from "../support/open-test.ts";
import { takeAway } from "./scene.ts";

const LOST = { code: "HOLDFAST_LEASE_LOST", message: expect.stringContaining("nothing was written") };

const workers: Worker[] = [];
afterEach(async () => {
  await Promise.all(workers.splice(0).map((worker) => worker.stop()));
});

async function rowsOf(bench: Bench, id: string): Promise<string[]> {
  const { rows } = await bench.db.query<{ what: string }>("select what from written where job = $1 order by what", [
    id,
  ]);
  return rows.map(({ what }) => what);
}

/** Everything a run can write, one by one; each writes a row of the user's with it. */
async function tryEverything(job: JobContext, chunk: Chunk<string>, by: string): Promise<Record<string, unknown>> {
  const write =
    (what: string) => async (tx: { query(text: string, values?: readonly unknown[]): Promise<unknown> }) => {
      await tx.query("insert into written (job, what) values ($1, $2)", [job.id, `${by}: ${what}`]);
    };
  const outcomes: Record<string, unknown> = {};
  const attempt = async (what: string, work: () => Promise<unknown>): Promise<void> => {
    outcomes[what] = await work().then(
      () => "written",
      (error: unknown) => error,
    );
  };
  await attempt("transaction", () => job.transaction(write("transaction")));
  await attempt("step", () => job.step("pay", write("step")));
  await attempt("chunk", () => chunk.save(write("chunk")));
  await attempt("checkpoint", () => job.checkpoint({ by }));
  await attempt("generation", () => job.generation(`unit of ${job.id}`));
  await attempt("complete", () =>
    job.transaction(async (tx) => {
      await write("complete")(tx);
      await job.complete(tx, { by });
    }),
  );
  return outcomes;
}

describe.each(TIERS)("a lost lease, %s", (tier) => {
  const bench = useHoldfast(tier);
  beforeAll(() => bench.db.script("create table written (job uuid, what text)"));

  interface TwoRuns {
    id: string;
    first: JobContext;
    second: JobContext;
    firstChunk: Chunk<string>;
    secondChunk: Chunk<string>;
    release(which: "first" | "second", result?: unknown): void;
  }

  /** Two runs of one job under one worker, both in the middle of a chunk; the first one's lease was taken away. */
  async function twoRuns(how: "return" | "throw" = "return"): Promise<TwoRuns> {
    const runs: { job: JobContext; chunk: Chunk<string> }[] = [];
    const gates = [makeGate(), makeGate()];
    const started = [makeGate(), makeGate()];
    const kind = makeKind<null>({
      async run(job) {
        for await (const chunk of job.chunks("embed", ["a"])) {
          const nth = runs.push({ job, chunk }) - 1;
          started[nth]!.open();
          await gates[nth]!.opened;
          if (how === "throw" && nth === 0) throw new Error("the first one gives up");
          return { nth };
        }
        return undefined;
      },
    });
    workers.push(await bench.hf.work([kind], { concurrency: 2 }));
    const { id } = await bench.hf.enqueue(kind, null);
    await started[0]!.opened;
    await takeAway(bench, id);
    bench.hf.wake();
    await started[1]!.opened;
    return {
      id,
      first: runs[0]!.job,
      firstChunk: runs[0]!.chunk,
      second: runs[1]!.job,
      secondChunk: runs[1]!.chunk,
      release: (which) => gates[which === "first" ? 0 : 1]!.open(),
    };
  }

  test("two runs of one job in one process: everything the first one writes is refused, the second's counts", async () => {
    const two = await twoRuns();
    expect(two.first.token).not.toBe(two.second.token);
    const refused = await tryEverything(two.first, two.firstChunk, "first");
    expect(refused).toEqual({
      transaction: expect.objectContaining(LOST),
      step: expect.objectContaining(LOST),
      chunk: expect.objectContaining(LOST),
      checkpoint: expect.objectContaining(LOST),
      generation: expect.objectContaining(LOST),
      complete: expect.objectContaining(LOST),
    });
    expect(two.first.signal.reason).toMatchObject({ why: "lease-lost" });
    await two.second.progress(1, 2, "second");
    await two.first.progress(9, 9, "first");
    expect((await bench.hf.jobs.get(two.id))?.progress).toMatchObject({ done: 1, total: 2, note: "second" });
    expect(await rowsOf(bench, two.id)).toEqual([]);

    // The zombie returns first; that settles nothing.
    two.release("first");
    const accepted = await tryEverything(two.second, two.secondChunk, "second");
    expect(new Set(Object.values(accepted))).toEqual(new Set(["written"]));
    two.release("second");
    expect(await ended(bench.hf, two.id)).toMatchObject({
      state: "done",
      attempt: 1,
      claimCount: 2,
      result: { by: "second" },
      progress: { note: "embed" },
    });
    expect(await rowsOf(bench, two.id)).toEqual([
      "second: chunk",
      "second: complete",
      "second: step",
      "second: transaction",
    ]);
    expect(two.second.signal.aborted).toBe(false);
  });

  test.each(["return", "throw"] as const)("what a zombie that ends by a %s says is refused", async (how) => {
    const two = await twoRuns(how);
    const lost = nextOf(bench.hf, "lease.lost", two.id);
    two.release("first");
    await lost;
    expect(await bench.hf.jobs.get(two.id)).toMatchObject({ state: "running", attempt: 1 });
    expect(await bench.hf.jobs.attempts(two.id)).toEqual([]);
    await two.secondChunk.save();
    two.release("second");
    expect(await ended(bench.hf, two.id)).toMatchObject({ state: "done", result: { nth: 1 } });
  });

  test("a transaction that was open when the lease went finds it gone at its first statement, or has the row until its commit", async () => {
    const held = makeHeldKind<null>();
    workers.push(await bench.hf.work([held.kind], { concurrency: 2 }));
    const { id } = await bench.hf.enqueue(held.kind, null);
    const job = await held.started();
    if (tier === "server") {
      const inside = makeGate();
      const goOn = makeGate();
      const open = job.transaction(async (tx) => {
        await tx.query("insert into written (job, what) values ($1, 'before')", [id]);
        inside.open();
        await goOn.opened;
      });
      await inside.opened;
      // The takeover skips the locked row: nothing is taken.
      expect(await caught(takeAway(bench, id).finally(() => goOn.open()))).toMatchObject({
        message: expect.stringContaining("could not be taken away"),
      });
      await open;
      expect(await rowsOf(bench, id)).toEqual(["before"]);
    }
    await takeAway(bench, id);
    expect(
      await caught(job.transaction((tx) => tx.query("insert into written values ($1, 'after')", [id]))),
    ).toMatchObject(LOST);
    expect(await rowsOf(bench, id)).toEqual(tier === "server" ? ["before"] : []);
    held.release();
    await ended(bench.hf, id);
  });

  test.runIf(tier === "server")("a fence inside somebody else's transaction refuses as well", async () => {
    const held = makeHeldKind<null>();
    workers.push(await bench.hf.work([held.kind], { concurrency: 2 }));
    const { id } = await bench.hf.enqueue(held.kind, null);
    const job = await held.started();
    await takeAway(bench, id);
    const client = new Client({ connectionString: bench.url });
    await client.connect();
    await client.query("begin");
    expect(await caught(job.fence(client))).toMatchObject(LOST);
    await client.query("rollback");
    await client.end();
    held.release();
    await ended(bench.hf, id);
  });

  test("the keeper notices by itself, and says so once", async () => {
    const held = makeHeldKind<null>({ lease: "1s" });
    const events = collect(bench.hf, "lease.lost");
    workers.push(await bench.hf.work([held.kind], { concurrency: 2 }));
    const { id } = await bench.hf.enqueue(held.kind, null);
    const job = await held.started();
    await takeAway(bench, id);
    await aborted(job.signal);
    expect(job.signal.reason).toBeInstanceOf(JobAborted);
    expect(job.signal.reason).toMatchObject({ why: "lease-lost" });
    held.release();
    await ended(bench.hf, id);
    expect(events.events.filter(({ jobId }) => jobId === id)).toHaveLength(1);
    events.stop();
  });

  test("a handler whose write is refused is the first to notice: it is said, and once", async () => {
    // No beat comes for a third of that.
    const held = makeHeldKind<null>({ lease: "10m" });
    const events = collect(bench.hf, "lease.lost");
    const worker = await bench.hf.work([held.kind], { concurrency: 1 });
    workers.push(worker);
    const { id } = await bench.hf.enqueue(held.kind, null);
    const job = await held.started();
    await takeAway(bench, id);
    expect(await caught(job.transaction(() => Promise.resolve()))).toMatchObject(LOST);
    held.release();
    await ended(bench.hf, id);
    await expect.poll(() => events.events.filter(({ jobId }) => jobId === id)).toHaveLength(1);
    await worker.stop();
    expect(events.events.filter(({ jobId }) => jobId === id)).toHaveLength(1);
    events.stop();
  });

  describe("why a signal is aborted", () => {
    test("cancelled: the chunks stop, and the job ends cancelled", async () => {
      const given: number[] = [];
      const begun = makeGate();
      const kind = makeKind<null>({
        async run(job) {
          for await (const chunk of job.chunks("embed", ["a", "b", "c"], { size: 1 })) {
            given.push(chunk.start);
            await chunk.save();
            begun.open();
            await aborted(chunk.signal);
          }
        },
      });
      workers.push(await bench.hf.work([kind]));
      const { id } = await bench.hf.enqueue(kind, null);
      await begun.opened;
      expect(await bench.hf.jobs.cancel(id)).toBe("requested");
      expect(await ended(bench.hf, id)).toMatchObject({ state: "cancelled", lastError: { name: "JobAborted" } });
      expect(given).toEqual([0]);
    });

    test("timeout: it is settled as timed out though the handler never ends, what it writes later is refused, and the last one is dead", async () => {
      const jobs: JobContext[] = [];
      const kind = makeKind<null>({
        attempts: 2,
        backoff: ["0s"],
        timeout: "300ms",
        lease: "250ms",
        async run(job) {
          jobs.push(job);
          await new Promise(() => undefined);
        },
      });
      workers.push(await bench.hf.work([kind]));
      const { id } = await bench.hf.enqueue(kind, null);
      expect(await ended(bench.hf, id)).toMatchObject({
        state: "dead",
        attempt: 2,
        lastError: { name: "Timeout", reason: "timeout", message: expect.stringContaining("300 ms") },
      });
      expect(jobs.map(({ signal }) => signal.reason as JobAborted).map(({ why }) => why)).toEqual([
        "timeout",
        "timeout",
      ]);
      expect(await caught(jobs[0]!.transaction(() => Promise.resolve()))).toMatchObject(LOST);
      expect(await caught(jobs[1]!.checkpoint(1))).toMatchObject(LOST);
      expect(await bench.hf.jobs.attempts(id)).toMatchObject([
        { outcome: "retry", error: { reason: "timeout" } },
        { outcome: "dead", error: { reason: "timeout" } },
      ]);
    });

    test("shutdown: the chunk in hand is finished, the job goes back uncharged, and the next worker resumes it", async () => {
      const given: string[] = [];
      const begun = makeGate();
      const kind = makeKind<null>({
        async run(job) {
          for await (const chunk of job.chunks("embed", ["a", "b", "c"], { size: 1 })) {
            given.push(`${job.attempt} ${chunk.items[0]!}`);
            if (chunk.start === 1 && given.length === 2) {
              begun.open();
              await aborted(chunk.signal);
              expect(chunk.signal.reason).toMatchObject({ why: "shutdown" });
            }
            await chunk.save();
          }
        },
      });
      const worker = await bench.hf.work([kind], { grace: "0s" });
      const { id } = await bench.hf.enqueue(kind, null);
      await begun.opened;
      await worker.stop();
      expect(await bench.hf.jobs.get(id)).toMatchObject({ state: "pending", attempt: 0, progress: { done: 2 } });
      workers.push(await bench.hf.work([kind]));
      expect(await ended(bench.hf, id)).toMatchObject({ state: "done", attempt: 1, claimCount: 2 });
      expect(given).toEqual(["1 a", "1 b", "1 c"]);
    });
  });
});
