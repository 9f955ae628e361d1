// Finished jobs stay for their retention and go after it, by whole days where possible; dead ones stay.
import { describe, expect, test } from "vitest";
import { makePartitions } from "#src/store/janitor/partitions.js";
import { runDue } from "#src/testing/index.js";
import { collect } from "../support/events.ts";
import { makeKind } from "../support/make.ts";
import { TIERS, useHoldfast } from "../support/open-test.ts";
import { dropExpiredDays, purgeEarly } from "../support/purge.ts";

describe.each(TIERS)("finished jobs, %s", (tier) => {
  const bench = useHoldfast(tier);

  const partitions = async (): Promise<string[]> => {
    const { rows } = await bench.db.query<{ name: string }>(
      `select c.relname as name from pg_inherits i join pg_class c on c.oid = i.inhrelid
       where i.inhparent = 'holdfast.job_history'::regclass order by 1`,
    );
    return rows.map(({ name }) => name);
  };

  test("with a short retention are purged row by row, and no more at once than asked", async () => {
    const [short, long] = [makeKind({ keepDone: "1h" }), makeKind({ keepDone: "30d" })];
    await bench.hf.enqueueMany(
      short,
      Array.from({ length: 25 }, (_, payload) => ({ payload })),
    );
    const kept = await bench.hf.enqueue(long, 1);
    await runDue(bench.hf, [short, long], { concurrency: 10 });
    expect(await purgeEarly(bench.store, 10)).toBe(0);
    await bench.hf.clock.advance("61m");
    expect(await purgeEarly(bench.store, 10)).toBe(10);
    expect(await purgeEarly(bench.store, 10)).toBe(10);
    expect(await purgeEarly(bench.store, 10)).toBe(5);
    expect(await purgeEarly(bench.store, 10)).toBe(0);
    expect((await bench.hf.jobs.list({ kind: short.kind })).jobs).toEqual([]);
    expect(await bench.hf.jobs.get(kept.id)).toMatchObject({ state: "done" });
  });

  test("with no retention at all go at the next purge", async () => {
    const kind = makeKind({ keepDone: "0s" });
    const { id } = await bench.hf.enqueue(kind, 1);
    await runDue(bench.hf, [kind]);
    await bench.hf.clock.advance("1ms");
    expect(await purgeEarly(bench.store, 1_000)).toBeGreaterThanOrEqual(1);
    expect(await bench.hf.jobs.get(id)).toBeUndefined();
  });

  test("go by whole days when every job of a day is past its retention, and not before", async () => {
    const [week, forever] = [makeKind(), makeKind({ keepDone: "forever" })];
    await bench.hf.clock.advance("60d");
    await dropExpiredDays(bench.store);
    const first = await bench.hf.enqueue(week, 1);
    await runDue(bench.hf, [week]);
    await bench.hf.clock.advance("2d");
    const second = await bench.hf.enqueue(forever, 2);
    await runDue(bench.hf, [forever]);
    await bench.hf.clock.advance("4d");
    await dropExpiredDays(bench.store);
    expect(await bench.hf.jobs.get(first.id)).toMatchObject({ state: "done" });
    await bench.hf.clock.advance("2d");
    expect(await dropExpiredDays(bench.store)).toBeGreaterThan(0);
    expect(await bench.hf.jobs.get(first.id)).toBeUndefined();
    await bench.hf.clock.advance("365d");
    await dropExpiredDays(bench.store);
    expect(await bench.hf.jobs.get(second.id)).toMatchObject({ state: "done" });
    expect(await partitions()).toHaveLength(6 + 1);
  });

  test("dead ones are not finished: they stay until a person puts them away", async () => {
    const kind = makeKind({
      attempts: 1,
      run: () => {
        throw new Error("no");
      },
    });
    const { id } = await bench.hf.enqueue(kind, 1);
    await runDue(bench.hf, [kind]);
    await bench.hf.clock.advance("3650d");
    await purgeEarly(bench.store, 1_000);
    await dropExpiredDays(bench.store);
    expect(await bench.hf.jobs.get(id)).toMatchObject({ state: "dead" });
    await bench.hf.jobs.discard(id);
    await bench.hf.clock.advance("9d");
    await dropExpiredDays(bench.store);
    expect(await bench.hf.jobs.get(id)).toBeUndefined();
  });

  test("find a place also when nobody made the day's partition: the settle makes it", async () => {
    const kind = makeKind();
    for (const name of await partitions()) await bench.db.script(`drop table holdfast.${name}`);
    const { id } = await bench.hf.enqueue(kind, 1);
    const trouble = collect(bench.hf, "trouble");
    await runDue(bench.hf, [kind]);
    trouble.stop();
    expect(await bench.hf.jobs.get(id)).toMatchObject({ state: "done", attempt: 1, claimCount: 1 });
    expect((await partitions()).length).toBeGreaterThan(0);
  });

  test("have partitions for the days to come, made once however many make them", async () => {
    await bench.hf.clock.advance("30d");
    const made = await Promise.all([makePartitions(bench.store), makePartitions(bench.store)]);
    expect(made.flat()).toEqual([]);
    const today = (await bench.hf.clock.now()).toISOString().slice(0, 10).replaceAll("-", "");
    const ahead = (await partitions()).filter((name) => name >= `job_history_${today}`);
    expect(ahead).toHaveLength(5);
  });
});
