// How a handler ends decides what becomes of its job.
import { describe, expect, test } from "vitest";
import { Fatal, Gone, RetryAfter, Snooze } from "#src/job/outcome.js";
import { runDue } from "#src/testing/index.js";
import { times } from "../support/events.ts";
import { makeKind } from "../support/make.ts";
import { TIERS, useHoldfast } from "../support/open-test.ts";

const wrapped = (cause: Error): Error => new Error("while sending", { cause: new Error("in between", { cause }) });

describe.each(TIERS)("a handler, %s", (tier) => {
  const bench = useHoldfast(tier);

  /** Runs one job of which the handler throws what it is told, once. */
  async function throwing(thrown: () => unknown, attempts = 5) {
    const kind = makeKind({
      attempts,
      run: () => {
        throw thrown();
      },
    });
    const { id } = await bench.hf.enqueue(kind, 1);
    const enqueuedAt = await bench.hf.clock.now();
    await runDue(bench.hf, [kind]);
    const job = (await bench.hf.jobs.get(id))!;
    return { job, delayMs: job.runAt.getTime() - enqueuedAt.getTime(), attempts: await bench.hf.jobs.attempts(id) };
  }

  test("that returns makes its job done, with the result", async () => {
    const results = [{ a: [1] }, null, undefined, 0, "", false];
    const kind = makeKind<number>({ run: (job) => results[job.payload] });
    const jobs = await bench.hf.enqueueMany(
      kind,
      results.map((_, payload) => ({ payload })),
    );
    await runDue(bench.hf, [kind]);
    for (const [n, { id }] of jobs.entries()) {
      const job = await bench.hf.jobs.get(id);
      expect(job).toMatchObject({ state: "done", attempt: 1, lastError: null });
      expect(job?.result).toEqual(results[n] ?? null);
    }
  });

  test("that throws makes its job wait for the next try, with the error", async () => {
    const { job, attempts } = await throwing(() => new TypeError("broken"));
    expect(job).toMatchObject({
      state: "pending",
      attempt: 1,
      lastError: { name: "TypeError", message: "broken", stack: expect.stringContaining("outcomes.test") },
    });
    expect(attempts).toMatchObject([{ attempt: 1, outcome: "retry", error: { message: "broken" } }]);
  });

  test.each([
    ["Fatal", () => new Fatal("no such chat")],
    ["a wrapped Fatal", () => wrapped(new Fatal("no such chat"))],
  ])("that throws %s makes its job dead at once", async (_, thrown) => {
    const { job, attempts } = await throwing(thrown);
    expect(job).toMatchObject({ state: "dead", attempt: 1, maxAttempts: 5, lastError: { reason: "fatal" } });
    expect(attempts).toMatchObject([{ outcome: "dead" }]);
  });

  test.each([
    ["Gone", () => new Gone("the article was deleted"), "the article was deleted"],
    ["a wrapped Gone", () => wrapped(new Gone("deleted")), "while sending"],
  ])("that throws %s makes its job done, and keeps why", async (_, thrown, message) => {
    const { job, attempts } = await throwing(thrown);
    expect(job).toMatchObject({ state: "done", result: null, lastError: { message } });
    expect(attempts).toEqual([]);
  });

  test.each([
    ["RetryAfter", () => new RetryAfter("17m", "rate limited")],
    ["a wrapped RetryAfter", () => wrapped(new RetryAfter("17m"))],
  ])("that throws %s is tried again when it said, and the attempt is used", async (_, thrown) => {
    const { job, delayMs, attempts } = await throwing(thrown);
    expect(job).toMatchObject({ state: "pending", attempt: 1 });
    expect(delayMs).toBeGreaterThanOrEqual(17 * 60_000);
    expect(delayMs).toBeLessThan(17 * 60_000 + 20_000);
    expect(attempts).toMatchObject([{ outcome: "retry" }]);
  });

  test("that throws RetryAfter in its last attempt makes its job dead", async () => {
    const { job } = await throwing(() => new RetryAfter("17m"), 1);
    expect(job).toMatchObject({ state: "dead", attempt: 1 });
  });

  test.each([
    ["Snooze", () => new Snooze("17m")],
    ["a wrapped Snooze", () => wrapped(new Snooze("17m"))],
  ])("that throws %s comes back when it said, and no attempt is used", async (_, thrown) => {
    const { job, delayMs, attempts } = await throwing(thrown, 1);
    expect(job).toMatchObject({ state: "pending", attempt: 0, claimCount: 1, lastError: null });
    expect(delayMs).toBeGreaterThanOrEqual(17 * 60_000);
    expect(delayMs).toBeLessThan(17 * 60_000 + 20_000);
    expect(attempts).toEqual([]);
  });

  test("can snooze any number of times", async () => {
    let naps = 0;
    const kind = makeKind({
      attempts: 1,
      run: () => {
        naps += 1;
        if (naps <= 6) throw new Snooze("0s");
        return naps;
      },
    });
    const { id } = await bench.hf.enqueue(kind, 1);
    expect(await runDue(bench.hf, [kind])).toMatchObject({ runs: 7, snoozed: 6, done: 1 });
    expect(await bench.hf.jobs.get(id)).toMatchObject({ state: "done", attempt: 1, claimCount: 7, result: 7 });
  });

  test("is told why the attempt before failed", async () => {
    const seen: unknown[] = [];
    const kind = makeKind({
      backoff: ["0s"],
      run: (job) => {
        seen.push([job.attempt, job.lastError?.message]);
        if (job.attempt < 3) throw new Error(`failure ${job.attempt}`);
      },
    });
    await bench.hf.enqueue(kind, 1);
    await runDue(bench.hf, [kind]);
    expect(seen).toEqual([
      [1, undefined],
      [2, "failure 1"],
      [3, "failure 2"],
    ]);
  });

  test("is reported whichever way it ends", async () => {
    const kind = makeKind<string>({
      run: (job) => {
        if (job.payload === "fails") throw new Error("no");
        if (job.payload === "dies") throw new Fatal("no");
        if (job.payload === "sleeps") throw new Snooze("1h");
      },
    });
    const mine = (event: { kind: string }): boolean => event.kind === kind.kind;
    const reported = Promise.all([
      times(bench.hf, "job.done", 1, mine),
      times(bench.hf, "job.retrying", 1, mine),
      times(bench.hf, "job.dead", 1, mine),
      times(bench.hf, "job.snoozed", 1, mine),
    ]);
    await bench.hf.enqueueMany(
      kind,
      ["works", "fails", "dies", "sleeps"].map((payload) => ({ payload })),
    );
    await runDue(bench.hf, [kind]);
    const [done, retrying, dead] = await reported;
    expect(done).toMatchObject({ attempt: 1, queue: "default", workerId: expect.any(String) });
    expect(done.durationMs).toBeGreaterThanOrEqual(0);
    expect(retrying.error?.message).toBe("no");
    expect(retrying.runAt).toBeInstanceOf(Date);
    expect(dead.error?.reason).toBe("fatal");
  });
});
