// The figures that screens and charts show instead of counting: hours made of minutes, and depths of a table that is too
// large to count.
import { describe, expect, test } from "vitest";
import { countDepths } from "#src/store/stats/depths.js";
import { addRunCounts, runSeries } from "#src/store/stats/run-counts.js";
import { TIERS, useHoldfast } from "../support/open-test.ts";

describe.each(TIERS)("roll-ups (%s)", (tier) => {
  const bench = useHoldfast(tier);
  const add = (outcome: string, runs: number) =>
    addRunCounts(bench.store, [
      {
        queue: "q",
        kind: "k",
        outcome,
        runs,
        waitMs: 10 * runs,
        runMs: 100 * runs,
        waits: [0, 0, 0, 0, runs],
        durations: [0, 0, 0, 0, 0, 0, 0, runs],
      },
    ]);
  const series = async (width: 60 | 3600) => {
    const to = new Date((await bench.hf.clock.now()).getTime() + 1);
    const from = new Date(to.getTime() - 365 * 86_400_000);
    const points = await runSeries(bench.store, { from, to, queue: "q", limit: 1_000, width });
    return points.map(({ at, outcome, runs, waitMs, runMs }) => ({ at, outcome, runs, waitMs, runMs }));
  };
  const run = async (): Promise<Record<string, number>> => {
    const [result] = await bench.hf.janitor.run("roll-up");
    if (!result?.ran || result.error !== null) throw new Error(JSON.stringify(result));
    return result.rows;
  };

  test("minutes become an hour once it is over, also those that were added late, and never twice", async () => {
    // To the beginning of an hour, so that the minutes below are in one.
    const now = (await bench.hf.clock.now()).getTime();
    await bench.hf.clock.advance(`${3_600_000 - (now % 3_600_000)}ms`);
    const hour = await bench.hf.clock.now();
    hour.setUTCMinutes(0, 0, 0);
    await add("done", 3);
    await bench.hf.clock.advance("10m");
    await add("done", 4);
    await add("dead", 1);
    await run();
    expect(await series(3_600)).toEqual([]);
    expect(await series(60)).toHaveLength(3);
    await bench.hf.clock.advance("50m");
    const whole = [
      { at: hour, outcome: "dead", runs: 1, waitMs: 10, runMs: 100 },
      { at: hour, outcome: "done", runs: 7, waitMs: 70, runMs: 700 },
    ];
    await run();
    expect(await series(3_600)).toEqual(whole);
    await run();
    expect(await series(3_600)).toEqual(whole);
    // A process that could not store its counts for a while.
    await bench.db.query(
      `insert into holdfast.run_counts values (60, $1::timestamptz + interval '59 minutes', 'q', 'k', 'done', 2, 20, 200)`,
      [hour.toISOString()],
    );
    await run();
    expect((await series(3_600))[1]).toMatchObject({ outcome: "done", runs: 9, waitMs: 90, runMs: 900 });
  });

  test("minutes stay for two days, hours for 90", async () => {
    const hours = await series(3_600);
    await bench.hf.clock.advance("49h");
    expect(await run()).toEqual({ trimmed: 4 });
    expect(await series(60)).toEqual([]);
    expect(await series(3_600)).toEqual(hours);
    await bench.hf.clock.advance("88d");
    expect(await run()).toEqual({ trimmed: 2 });
    expect(await series(3_600)).toEqual([]);
  });

  test("long ranges are answered by the hour, short ones by the minute", async () => {
    await add("done", 5);
    const at = await bench.hf.clock.now();
    await bench.hf.clock.advance("1h");
    await run();
    const to = new Date(at.getTime() + 3_600_000);
    const [byMinute] = await bench.hf.stats.runs({ from: new Date(at.getTime() - 60_000), to });
    expect(byMinute?.at.getTime()).toBe(Math.floor(at.getTime() / 60_000) * 60_000);
    const [byHour] = await bench.hf.stats.runs({ from: new Date(at.getTime() - 3 * 86_400_000), to });
    expect(byHour).toMatchObject({ runs: 5, at: new Date(Math.floor(at.getTime() / 3_600_000) * 3_600_000) });
  });
});

describe("depths of a table that is too large to count (server)", () => {
  const bench = useHoldfast("server");
  const ROWS = 100_000;

  test("are estimated from a part of it, within a fifth; a queue with a single job is not overlooked", async () => {
    await bench.db.script(
      `set synchronous_commit = off;
       insert into holdfast.jobs (id, run_at, created_at, max_attempts, rank, kind, queue, payload, attempt)
       select gen_random_uuid(), now() + case n % 4 when 0 then 1 else -1 end * interval '1 hour', now(), 5, 0, 'k', 'many',
         to_jsonb(repeat('x', 400)),         case n % 4 when 1 then 1 else 0 end from generate_series(1, ${ROWS}) n;
       insert into holdfast.jobs (id, run_at, created_at, max_attempts, rank, kind, queue, payload)
       values (gen_random_uuid(), now() - interval '10 minutes', now(), 5, 0, 'rare', 'few', '{}')`,
      { timeoutMs: 60_000 },
    );
    const began = performance.now();
    const depths = await countDepths(bench.store);
    const tookMs = performance.now() - began;
    const many = depths.find(({ queue }) => queue === "many")!;
    expect(many.estimated).toBe(true);
    const near = (share: number): [number, number] => [0.8 * ROWS * share, 1.2 * ROWS * share];
    for (const [figure, share] of [
      [many.ready, 0.5],
      [many.scheduled, 0.25],
      [many.retrying, 0.25],
    ] as const) {
      const [least, most] = near(share);
      expect(figure).toBeGreaterThan(least);
      expect(figure).toBeLessThan(most);
    }
    const few = depths.find(({ queue }) => queue === "few")!;
    expect(few.ready).toBeGreaterThanOrEqual(1);
    const { rows } = await bench.db.query<{ at: Date }>("select run_at as at from holdfast.jobs where kind = 'rare'");
    expect(few.oldestReadyAt).toEqual(rows[0]!.at);
    // Counting all of it would take as long as it is large.
    expect(tookMs).toBeLessThan(2_000);
    await bench.db.script("truncate holdfast.jobs");
    expect((await countDepths(bench.store)).every(({ estimated }) => !estimated)).toBe(true);
  }, 60_000);
});
