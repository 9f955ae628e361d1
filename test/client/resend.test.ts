// An enqueue whose reply was lost is sent again under the same id: it is one job, whatever became of it meanwhile.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { findExisting, insertJobs } from "#src/store/jobs/insert.js";
import { uuidv7 } from "#src/shared/uuid.js";
import { runDue, openTest, type TestHoldfast } from "#src/testing/index.js";
import { caught, makeKind } from "../support/make.ts";
import { TIERS, useHoldfast } from "../support/open-test.ts";
import { startTcpProxy, type TcpProxy } from "../support/tcp-proxy.ts";

/** What every enqueue says to the server. */
const INSERT = ".insert_";

describe.each(TIERS)("ids that are there already, %s", (tier) => {
  const bench = useHoldfast(tier);

  test("are found whether their job waits, is done, dead or cancelled", async () => {
    const kind = makeKind<string>({
      attempts: 1,
      run: (job) => {
        if (job.payload === "dies") throw new Error("no");
      },
    });
    const [done, dies] = await bench.hf.enqueueMany(kind, [{ payload: "works" }, { payload: "dies" }]);
    await runDue(bench.hf, [kind]);
    const waits = await bench.hf.enqueue(kind, "waits", { delay: "1h" });
    const cancelled = await bench.hf.enqueue(kind, "is cancelled", { delay: "1h" });
    await bench.hf.jobs.cancel(cancelled.id);
    const ids = [done!.id, dies!.id, waits.id, cancelled.id];
    expect(await findExisting(bench.store, [...ids, uuidv7()])).toEqual(new Set(ids));
  });

  test("a statement with a key that arrives once more after its job is done makes no second job", async () => {
    const kind = makeKind();
    const job = { id: uuidv7(), kind: kind.kind, queue: "default", rank: 0, attempts: 5, payload: "1", key: "late" };
    const keyed = { ...job, keepKeyMs: 3_600_000 };
    await insertJobs(bench.store, [keyed], null);
    // While it waits, and when it is over.
    expect(await insertJobs(bench.store, [keyed], null)).toMatchObject([
      { id: job.id, created: true, conflict: false },
    ]);
    expect(await runDue(bench.hf, [kind])).toMatchObject({ runs: 1, done: 1 });
    expect(await insertJobs(bench.store, [keyed], null)).toMatchObject([
      { id: job.id, created: true, conflict: false },
    ]);
    expect(await runDue(bench.hf, [kind])).toMatchObject({ runs: 0 });
    expect((await bench.hf.jobs.list({ kind: kind.kind })).jobs).toHaveLength(1);
    // The key of a job that is gone can be used again when its time is over, by another job.
    await bench.hf.clock.advance("2h");
    const next = { ...keyed, id: uuidv7() };
    expect(await insertJobs(bench.store, [next], null)).toMatchObject([{ id: next.id, created: true }]);
    expect(await runDue(bench.hf, [kind])).toMatchObject({ runs: 1, done: 1 });
  });

  test("cannot be inserted twice", async () => {
    const job = { id: uuidv7(), kind: makeKind().kind, queue: "default", rank: 0, attempts: 5, payload: "1" };
    await insertJobs(bench.store, [job], null);
    expect(await caught(insertJobs(bench.store, [job], null))).toMatchObject({ code: "23505" });
  });
});

describe("a reply that was lost", () => {
  const bench = useHoldfast("server");
  let proxy: TcpProxy;
  let hf: TestHoldfast;

  beforeAll(async () => {
    proxy = await startTcpProxy(bench.url);
    hf = await openTest({ database: proxy.through(bench.url), poolSize: 2 });
  });
  afterAll(async () => {
    await hf.close();
    await proxy.close();
  });

  test("makes one job, and the caller hears that it was created", async () => {
    const kind = makeKind();
    const lost = proxy.loseReplyTo(INSERT);
    const [result] = await Promise.all([hf.enqueue(kind, { n: 1 }), lost]);
    expect(result).toMatchObject({ created: true, conflict: false });
    expect((await bench.hf.jobs.list({ kind: kind.kind })).jobs.map(({ id }) => id)).toEqual([result.id]);
  });

  test("makes one job of each of those that shared the statement", async () => {
    const kind = makeKind();
    const lost = proxy.loseReplyTo(INSERT);
    const results = await Promise.all(Array.from({ length: 50 }, (_, n) => hf.enqueue(kind, { n })));
    await lost;
    expect(results.every(({ created }) => created)).toBe(true);
    const stored = (await bench.hf.jobs.list({ kind: kind.kind, limit: 100 })).jobs.map(({ id }) => id);
    expect(stored.toSorted()).toEqual(results.map(({ id }) => id).toSorted());
  });

  test("makes one job with its key", async () => {
    const kind = makeKind();
    const lost = proxy.loseReplyTo(INSERT);
    const [result] = await Promise.all([hf.enqueue(kind, 1, { key: "k" }), lost]);
    expect(result).toMatchObject({ created: true });
    expect(await bench.hf.enqueue(kind, 1, { key: "k" })).toMatchObject({ id: result.id, created: false });
  });

  test("makes one member of its group", async () => {
    const kind = makeKind();
    const lost = proxy.loseReplyTo(INSERT);
    await Promise.all([hf.enqueue(kind, 1, { group: "lost replies" }), lost]);
    await hf.enqueue(kind, 2, { group: "lost replies" });
    expect(await runDue(bench.hf, [kind])).toMatchObject({ runs: 2, done: 2 });
  });

  test.each([
    ["many", 50, INSERT],
    ["very many, before they were sent,", 400, "copy "],
    ["very many, after they were stored,", 400, "the last of them"],
  ])("of %s in one call makes each of them once", async (_when, count, text) => {
    const kind = makeKind();
    const rows = Array.from({ length: count }, (_, n) => ({ payload: n === count - 1 ? "the last of them" : n }));
    const lost = proxy.loseReplyTo(text);
    const [results] = await Promise.all([hf.enqueueMany(kind, rows), lost]);
    expect(results.filter(({ created }) => created)).toHaveLength(count);
    const { jobs } = await bench.hf.jobs.list({ kind: kind.kind, limit: 500 });
    expect(jobs.map(({ id }) => id).toSorted()).toEqual(results.map(({ id }) => id).toSorted());
  });

  test("while the job was already run finds it in the history", async () => {
    const kind = makeKind();
    const worker = await bench.hf.work([kind], { poll: "10ms" });
    const lost = proxy.loseReplyTo(INSERT);
    const [result] = await Promise.all([hf.enqueue(kind, 1), lost]);
    await bench.hf.jobs.wait(result.id, { timeout: "10s" });
    await worker.stop();
    expect((await bench.hf.jobs.list({ kind: kind.kind })).jobs).toHaveLength(1);
  });

  test("for good is told as unknown, with the id and what to do", async () => {
    const kind = makeKind();
    await proxy.refuse(true);
    proxy.cut();
    const error = await caught(hf.enqueue(kind, 1));
    await proxy.refuse(false);
    expect(error).toMatchObject({
      code: "HOLDFAST_DATABASE_UNAVAILABLE",
      message: expect.stringMatching(/\(id [0-9a-f-]{36}\): it may or may not have been stored/),
      hint: expect.stringContaining("with a key"),
    });
    // And the client goes on as soon as the database is back.
    expect(await hf.enqueue(kind, 2)).toMatchObject({ created: true });
  });
});
