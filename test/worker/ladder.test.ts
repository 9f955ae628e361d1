import { describe, expect, test } from "vitest";
import { runDue } from "#src/testing/index.js";
import { makeKind } from "../support/make.ts";
import { TIERS, useHoldfast } from "../support/open-test.ts";

describe.each(TIERS)("a job that always fails, %s", (tier) => {
  const bench = useHoldfast(tier);

  test("is tried at once, then after 30 s, 2 m, 10 m and 1 h, and is dead after the fifth", async () => {
    const kind = makeKind({
      run: (job) => {
        throw new Error(`failure ${job.attempt}`);
      },
    });
    const { id } = await bench.hf.enqueue(kind, 1);
    await runDue(bench.hf, [kind]);
    let attempt = 1;
    for (const [almost, rest] of [
      ["25s", "5s"],
      ["115s", "5s"],
      ["595s", "5s"],
      ["3595s", "5s"],
    ] as const) {
      expect(await bench.hf.jobs.get(id)).toMatchObject({ state: "pending", attempt });
      await bench.hf.clock.advance(almost);
      expect(await runDue(bench.hf, [kind])).toMatchObject({ runs: 0 });
      await bench.hf.clock.advance(rest);
      expect(await runDue(bench.hf, [kind])).toMatchObject({ runs: 1 });
      attempt += 1;
    }
    expect(await bench.hf.jobs.get(id)).toMatchObject({
      state: "dead",
      attempt: 5,
      maxAttempts: 5,
      lastError: { message: "failure 5" },
    });
    await bench.hf.clock.advance("365d");
    expect(await runDue(bench.hf, [kind])).toMatchObject({ runs: 0 });
  });

  test("has every failed attempt on record, with when it was and how long it took", async () => {
    const kind = makeKind({
      attempts: 3,
      backoff: ["1m"],
      async run(job) {
        await new Promise((resolve) => setTimeout(resolve, 30));
        throw new Error(`failure ${job.attempt}`);
      },
    });
    const { id } = await bench.hf.enqueue(kind, 1);
    for (let n = 0; n < 3; n += 1) {
      await runDue(bench.hf, [kind]);
      await bench.hf.clock.advance("1m");
    }
    const attempts = await bench.hf.jobs.attempts(id);
    expect(attempts.map(({ attempt, outcome, error }) => [attempt, outcome, error?.message])).toEqual([
      [1, "retry", "failure 1"],
      [2, "retry", "failure 2"],
      [3, "dead", "failure 3"],
    ]);
    for (const [n, { startedAt, failedAt, durationMs }] of attempts.entries()) {
      expect(durationMs).toBe(failedAt.getTime() - startedAt!.getTime());
      expect(durationMs).toBeGreaterThanOrEqual(25);
      expect(durationMs).toBeLessThan(10_000);
      if (n > 0) expect(startedAt!.getTime() - attempts[n - 1]!.failedAt.getTime()).toBeGreaterThanOrEqual(59_000);
    }
  });

  test("waits as its exponential policy says", async () => {
    const kind = makeKind({
      attempts: 6,
      backoff: { base: "10s", factor: 3, cap: "5m", jitter: 0 },
      run: () => {
        throw new Error("no");
      },
    });
    const { id } = await bench.hf.enqueue(kind, 1);
    const waits: number[] = [];
    for (let n = 0; n < 5; n += 1) {
      await runDue(bench.hf, [kind]);
      const job = (await bench.hf.jobs.get(id))!;
      const { failedAt } = (await bench.hf.jobs.attempts(id)).at(-1)!;
      waits.push((job.runAt.getTime() - failedAt.getTime()) / 1_000);
      await bench.hf.clock.advance("5m");
    }
    expect(waits).toEqual([10, 30, 90, 270, 300]);
  });
});
