import { describe, expect, test } from "vitest";
import { Snooze } from "#src/job/outcome.js";
import { runDue } from "#src/testing/index.js";
import { caught, makeKind } from "../support/make.ts";
import { TIERS, useHoldfast } from "../support/open-test.ts";

describe.each(TIERS)("runDue(), %s", (tier) => {
  const bench = useHoldfast(tier);

  test("with nothing to do comes back at once", async () => {
    expect(await runDue(bench.hf, [makeKind()])).toEqual({
      runs: 0,
      done: 0,
      retrying: 0,
      snoozed: 0,
      dead: 0,
      cancelled: 0,
    });
  });

  test("runs what is due, and what that enqueues, until nothing is; what is due later stays", async () => {
    const seen: number[] = [];
    const kind = makeKind<number>({
      async run(job) {
        seen.push(job.payload);
        if (job.payload < 3) await bench.hf.enqueue(kind, job.payload + 1);
        if (job.payload === 3) await bench.hf.enqueue(kind, 99, { delay: "1h" });
      },
    });
    await bench.hf.enqueue(kind, 1);
    expect(await runDue(bench.hf, [kind])).toMatchObject({ runs: 3, done: 3 });
    expect(seen).toEqual([1, 2, 3]);
    await bench.hf.clock.advance("1h");
    expect(await runDue(bench.hf, [kind])).toMatchObject({ runs: 1, done: 1 });
  });

  test("counts how the runs ended, of its kinds only", async () => {
    const kind = makeKind<string>({
      attempts: 1,
      run: (job) => {
        if (job.payload === "sleeps") throw new Snooze("1h");
        if (job.payload === "dies") throw new Error("no");
      },
    });
    const other = makeKind();
    await bench.hf.enqueue(other, 1);
    await bench.hf.enqueueMany(
      kind,
      ["works", "sleeps", "dies"].map((payload) => ({ payload })),
    );
    expect(await runDue(bench.hf, [kind])).toMatchObject({ runs: 3, done: 1, snoozed: 1, dead: 1 });
    expect(await runDue(bench.hf, [other])).toMatchObject({ runs: 1, done: 1 });
  });

  test("does not go on for ever: a job that always comes back is reported", async () => {
    const kind = makeKind({
      run: () => {
        throw new Snooze("0s");
      },
    });
    const { id } = await bench.hf.enqueue(kind, 1);
    expect(await caught(runDue(bench.hf, [kind], { maxRuns: 20 }))).toMatchObject({
      code: "HOLDFAST_WAIT_TIMEOUT",
      message: expect.stringMatching(/gave up after \d+ runs: 1 jobs? (is|are) still due/),
    });
    await bench.hf.jobs.cancel(id);
  });

  test("gives up after its timeout, and leaves the job for the next one", async () => {
    let isStuck = true;
    const kind = makeKind({
      async run(job) {
        while (isStuck && !job.signal.aborted) await new Promise((resolve) => setTimeout(resolve, 10));
        job.signal.throwIfAborted();
      },
    });
    await bench.hf.enqueue(kind, 1);
    expect(await caught(runDue(bench.hf, [kind], { timeout: "200ms" }))).toMatchObject({
      message: expect.stringContaining("gave up after 200ms"),
    });
    isStuck = false;
    expect(await runDue(bench.hf, [kind])).toMatchObject({ runs: 1, done: 1 });
  });

  test("refuses options that cannot work", async () => {
    const kind = makeKind();
    expect(await caught(runDue(bench.hf, [kind], { maxRuns: 0 }))).toMatchObject({ code: "HOLDFAST_OPTION_INVALID" });
    // @ts-expect-error a bare number is no duration
    expect(await caught(runDue(bench.hf, [kind], { timeout: 5 }))).toMatchObject({ code: "HOLDFAST_OPTION_INVALID" });
    expect(await caught(runDue(bench.hf, []))).toMatchObject({ message: "work() got no kinds." });
  });
});
