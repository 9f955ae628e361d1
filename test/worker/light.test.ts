// Many short jobs are claimed lightly; whatever else such a job turns out to do is right all the same.
import { describe, expect, test } from "vitest";
import { RetryAfter } from "#src/job/outcome.js";
import { makeGate, makeKind } from "../support/make.ts";
import { TIERS, useHoldfast } from "../support/open-test.ts";

const COUNT = 3_000;
const CONCURRENCY = 200;

describe.each(TIERS)("many short jobs, %s", (tier) => {
  const bench = useHoldfast(tier);

  async function finished(kind: string, count: number): Promise<Record<string, unknown>[]> {
    for (let n = 0; n < 600; n++) {
      const { rows } = await bench.db.query(
        `select payload, state, attempt, claim_count, result, token, started_at >= created_at as started
         from holdfast.job_history where kind = $1`,
        [kind],
      );
      if (rows.length >= count) return rows;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    throw new Error("not finished in time");
  }

  /** How many claims with unfinished jobs are light; a row whose jobs were settled in parts goes with the next beat. */
  async function lightLeases(): Promise<number> {
    const { rows } = await bench.db.query<{ n: number }>(
      `select count(*)::integer as n from holdfast.leases l
       where light and exists (select 1 from holdfast.jobs j where j.id = any(l.job_ids))`,
    );
    return rows[0]!.n;
  }

  test("are claimed lightly, run once each, and end with attempt, count, token and start", async () => {
    let seen = 0;
    const runs = new Map<number, number>();
    const kind = makeKind<number>({
      async run(job) {
        runs.set(job.payload, (runs.get(job.payload) ?? 0) + 1);
        if (job.payload % 500 === 499) seen += await lightLeases();
      },
    });
    await bench.hf.enqueueMany(
      kind,
      Array.from({ length: COUNT }, (_, payload) => ({ payload })),
    );
    const worker = await bench.hf.work([kind], { concurrency: CONCURRENCY });
    const rows = await finished(kind.kind, COUNT);
    await worker.stop();
    expect(seen).toBeGreaterThan(0);
    expect(runs.size).toBe(COUNT);
    expect([...runs.values()].every((count) => count === 1)).toBe(true);
    for (const row of rows) expect(row).toMatchObject({ state: "done", attempt: 1, claim_count: 1, started: true });
    expect(new Set(rows.map((row) => row["token"])).has(null)).toBe(false);
  }, 60_000);

  test("that fail, return, report, commit, snooze or last are settled like any others", async () => {
    const rows: Record<number, number> = {};
    const kind = makeKind<number>({
      attempts: 3,
      async run(job) {
        const what = job.payload;
        rows[what] = (rows[what] ?? 0) + 1;
        if (what < COUNT / 2) return undefined;
        switch (what % 40) {
          case 1:
            if (job.attempt === 1) throw new RetryAfter("10ms", "a moment");
            return undefined;
          case 2:
            return { what };
          case 3:
            await job.progress(1, 2, "half");
            return undefined;
          case 4:
            await job.transaction((tx) => tx.query("select 1"));
            return undefined;
          case 5:
            await job.step("once", async () => 1);
            return undefined;
          case 6:
            await new Promise((resolve) => setTimeout(resolve, 400));
            return undefined;
        }
        return undefined;
      },
    });
    await bench.hf.enqueueMany(
      kind,
      Array.from({ length: COUNT }, (_, payload) => ({ payload })),
    );
    const worker = await bench.hf.work([kind], { concurrency: CONCURRENCY });
    const ended = await finished(kind.kind, COUNT);
    await worker.stop();
    for (const { payload, state, attempt, result } of ended) {
      const what = payload as number;
      const isSpecial = what >= COUNT / 2;
      expect({ what, state }).toEqual({ what, state: "done" });
      expect({ what, attempt }).toEqual({ what, attempt: isSpecial && what % 40 === 1 ? 2 : 1 });
      expect({ what, result }).toEqual({ what, result: isSpecial && what % 40 === 2 ? { what } : null });
      expect({ what, runs: rows[what] }).toEqual({ what, runs: isSpecial && what % 40 === 1 ? 2 : 1 });
    }
  }, 60_000);

  test("that turn out to be long are marked soon, can be cancelled, and are given back at a stop", async () => {
    const gate = makeGate();
    let started = 0;
    const kind = makeKind<number>({
      async run(job) {
        if (job.payload < COUNT) return;
        started += 1;
        await Promise.race([
          gate.opened,
          new Promise((_, reject) => job.signal.addEventListener("abort", () => reject(job.signal.reason as Error))),
        ]);
      },
    });
    const jobs = await bench.hf.enqueueMany(
      kind,
      Array.from({ length: COUNT + CONCURRENCY }, (_, payload) => ({ payload })),
    );
    const worker = await bench.hf.work([kind], { concurrency: CONCURRENCY, grace: "100ms", abortGrace: "2s" });
    await finished(kind.kind, COUNT);
    const long = jobs.slice(COUNT);
    for (let n = 0; n < 200 && started < CONCURRENCY; n++) await new Promise((resolve) => setTimeout(resolve, 20));
    expect(started).toBe(CONCURRENCY);
    expect(await bench.hf.jobs.get(long[0]!.id)).toMatchObject({ state: "running", attempt: 1 });
    for (let n = 0; n < 200 && (await lightLeases()) > 0; n++) await new Promise((resolve) => setTimeout(resolve, 20));
    expect(await lightLeases()).toBe(0);
    await bench.hf.jobs.cancel(long[1]!.id);
    for (let n = 0; n < 200; n++) {
      if ((await bench.hf.jobs.get(long[1]!.id))?.state === "cancelled") break;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    expect(await bench.hf.jobs.get(long[1]!.id)).toMatchObject({ state: "cancelled", attempt: 1 });
    await worker.stop();
    gate.open();
    expect(await bench.hf.jobs.get(long[0]!.id)).toMatchObject({ state: "pending", attempt: 0 });
  }, 60_000);
});
