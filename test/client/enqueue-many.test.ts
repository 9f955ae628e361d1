import { describe, expect, test } from "vitest";
import { z } from "zod";
import { defineJob } from "#src/job/define-job.js";
import { runDue } from "#src/testing/index.js";
import { caught, makeKind, uniqueName } from "../support/make.ts";
import { TIERS, useHoldfast } from "../support/open-test.ts";

describe.each(TIERS)("many in one call, %s", (tier) => {
  const bench = useHoldfast(tier);

  test("are answered in the order of the rows, and each has its own payload", async () => {
    const kind = makeKind<{ n: number }>();
    const rows = Array.from({ length: 2_500 }, (_, n) => ({ payload: { n } }));
    const results = await bench.hf.enqueueMany(kind, rows);
    expect(results).toHaveLength(2_500);
    expect(results.every(({ created, conflict }) => created && !conflict)).toBe(true);
    const ids = results.map(({ id }) => id);
    expect(ids).toEqual(ids.toSorted());
    for (const n of [0, 1, 1_234, 2_499]) {
      expect((await bench.hf.jobs.get(ids[n]!))?.payload).toEqual({ n });
    }
  });

  test("none are none", async () => {
    expect(await bench.hf.enqueueMany(makeKind(), [])).toEqual([]);
  });

  test("one that is wrong refuses the call before anything is stored, and is named", async () => {
    const kind = defineJob(uniqueName(), { schema: z.object({ n: z.number() }), run: () => undefined });
    // @ts-expect-error a text is no number
    const error = await caught(bench.hf.enqueueMany(kind, [{ payload: { n: 1 } }, { payload: { n: "2" } }]));
    expect(error).toMatchObject({ code: "HOLDFAST_PAYLOAD_INVALID", message: expect.stringMatching(/row 1.*: n: /) });
    const unstorable = await caught(bench.hf.enqueueMany(makeKind(), [{ payload: "a" }, { payload: "\0" }]));
    expect(unstorable).toMatchObject({ message: expect.stringContaining("row 1") });
    expect((await bench.hf.jobs.list({ kind: kind.kind })).jobs).toEqual([]);
  });

  test("of which the last cannot be stored are refused, also when there are very many, and the next call goes through", async () => {
    const kind = makeKind();
    const rows = Array.from({ length: 1_000 }, (_, n) => ({ payload: n < 999 ? n : { bad: "\0" } }));
    for (let again = 0; again < 12; again += 1) {
      const error = await caught(bench.hf.enqueueMany(kind, rows));
      expect(error).toMatchObject({ code: "HOLDFAST_PAYLOAD_INVALID", message: expect.stringContaining("row 999") });
    }
    expect((await bench.hf.jobs.list({ kind: kind.kind })).jobs).toEqual([]);
    expect(await bench.hf.enqueueMany(kind, rows.slice(0, 999))).toHaveLength(999);
  });

  test("that are too much for one statement go in several", async () => {
    const kind = makeKind<string>();
    const rows = Array.from({ length: 250 }, (_, n) => ({ payload: `${n}${"x".repeat(20_000)}` }));
    const results = await bench.hf.enqueueMany(kind, rows);
    expect(new Set(results.map(({ id }) => id)).size).toBe(250);
    expect((await bench.hf.jobs.get(results[249]!.id))?.payload).toBe(rows[249]!.payload);
    expect((await bench.hf.jobs.list({ kind: kind.kind, limit: 500 })).jobs).toHaveLength(250);
  });

  test("are due now, by the database's clock", async () => {
    const kind = makeKind();
    const results = await bench.hf.enqueueMany(
      kind,
      Array.from({ length: 300 }, () => ({ payload: null })),
    );
    const jobs = await Promise.all([results[0]!, results[299]!].map(({ id }) => bench.hf.jobs.get(id)));
    for (const job of jobs) {
      expect(job?.runAt).toEqual(job?.createdAt);
      expect(Math.abs(job!.createdAt.getTime() - Date.now())).toBeLessThan(60_000);
    }
    expect(await runDue(bench.hf, [kind])).toMatchObject({ done: 300 });
  });

  test("may each have options of their own", async () => {
    const kind = makeKind();
    const results = await bench.hf.enqueueMany(kind, [
      { payload: 1, priority: 5 },
      { payload: 2, delay: "1h", queue: "late" },
      { payload: 3, key: "k", attempts: 2 },
      { payload: 4, group: "g" },
    ]);
    const jobs = await Promise.all(results.map(({ id }) => bench.hf.jobs.get(id)));
    expect(jobs.map((job) => job?.payload)).toEqual([1, 2, 3, 4]);
    expect(jobs[0]).toMatchObject({ priority: 5, key: null });
    expect(jobs[1]).toMatchObject({ queue: "late" });
    expect(jobs[2]).toMatchObject({ key: "k", maxAttempts: 2 });
    expect(jobs[3]).toMatchObject({ group: "g" });
  });

  test("with one key among them twice are one job: the first, and the other payload is told as a conflict", async () => {
    const kind = makeKind();
    const results = await bench.hf.enqueueMany(kind, [
      { payload: "a", key: "k" },
      { payload: "b", key: "k" },
      { payload: "a", key: "k" },
      { payload: "c" },
    ]);
    expect(results.map(({ created, conflict }) => [created, conflict])).toEqual([
      [true, false],
      [false, true],
      [false, false],
      [true, false],
    ]);
    expect(new Set(results.slice(0, 3).map(({ id }) => id)).size).toBe(1);
    expect((await bench.hf.jobs.get(results[0]!.id))?.payload).toBe("a");
  });

  test("with one coalesce key among them several times are one job with the newest payload", async () => {
    const kind = makeKind();
    const results = await bench.hf.enqueueMany(kind, [
      { payload: 1, coalesce: "doc" },
      { payload: 2, coalesce: "doc" },
      { payload: 3, coalesce: "doc" },
      { payload: 4, coalesce: "other" },
    ]);
    expect(results.map(({ created }) => created)).toEqual([true, false, false, true]);
    expect(new Set(results.map(({ id }) => id)).size).toBe(2);
    expect((await bench.hf.jobs.get(results[0]!.id))?.payload).toBe(3);
  });

  test("of several groups run in the order of the rows", async () => {
    const seen: string[] = [];
    const kind = makeKind<string>({ run: (job) => void seen.push(job.payload) });
    const rows = Array.from({ length: 30 }, (_, n) => ({ payload: `${n % 3}:${n}`, group: `many ${n % 3}` }));
    await bench.hf.enqueueMany(kind, rows);
    await runDue(bench.hf, [kind], { concurrency: 5 });
    for (const group of ["0", "1", "2"]) {
      const mine = (list: string[]): string[] => list.filter((entry) => entry.startsWith(group));
      expect(mine(seen)).toEqual(mine(rows.map(({ payload }) => payload)));
    }
  });
});
