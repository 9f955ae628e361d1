// What each chore removes, what it leaves, and what its preview says of it.
import { describe, expect, test } from "vitest";
import { runDue } from "#src/testing/run-due.js";
import { defineChore } from "#src/job/define-chore.js";
import { openTest } from "#src/testing/index.js";
import { listLeaves, walkLeaf, knownDays } from "#src/store/janitor/history-leaves.js";
import { countDepths, latestDepths } from "#src/store/stats/depths.js";
import { runSeries } from "#src/store/stats/run-counts.js";
import { ended } from "../support/events.ts";
import { makeHeldKind, makeKind, uniqueName } from "../support/make.ts";
import { until } from "../long/scene.ts";
import { TIERS, useHoldfast } from "../support/open-test.ts";

const failing = (options: object = {}) =>
  makeKind({
    attempts: 1,
    run: () => {
      throw new Error("no");
    },
    ...options,
  });

describe.each(TIERS)("the chores (%s)", (tier) => {
  const bench = useHoldfast(tier, {
    queues: {
      brief: { keepDone: "1h", keepEnded: "1m", keepDead: "2d" },
      eternal: { keepDone: "forever" },
    },
  });
  const run = async (chore: string): Promise<Record<string, number>> => {
    for (let tries = 0; ; tries += 1) {
      const [result] = await bench.hf.janitor.run(chore);
      if (result?.ran && result.error === null) return result.rows;
      // The janitor's own first run, at the start of the first worker, may be at it.
      if (!result || result.ran || tries > 100) throw new Error(JSON.stringify(result));
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  };
  const rowsOf = async (chore: string): Promise<Record<string, number> | undefined> =>
    (await bench.hf.janitor.preview(chore))[0]?.rows;
  const count = async (table: string): Promise<number> =>
    (await bench.db.query<{ n: number }>(`select count(*)::integer as n from holdfast.${table}`)).rows[0]!.n;

  test("purge-finished: each queue keeps its jobs for its own time; done and cancelled are told apart", async () => {
    const [brief, eternal, plain] = ["brief", "eternal", "default"].map((queue) => makeKind({ queue }));
    const jobs = await Promise.all([brief!, eternal!, plain!].map((kind) => bench.hf.enqueue(kind, 1)));
    await runDue(bench.hf, [brief!, eternal!, plain!]);
    const { id: gone } = await bench.hf.enqueue(brief!, 2);
    await bench.hf.jobs.cancel(gone);
    await bench.hf.clock.advance("59s");
    expect(await run("purge-finished")).toEqual({});
    await bench.hf.clock.advance("2s");
    expect(await rowsOf("purge-finished")).toEqual({ cancelled: 1 });
    expect(await run("purge-finished")).toEqual({ cancelled: 1 });
    await bench.hf.clock.advance("58m");
    expect(await run("purge-finished")).toEqual({});
    await bench.hf.clock.advance("2m");
    expect(await run("purge-finished")).toEqual({ done: 1 });
    const left = await Promise.all(jobs.map(({ id }) => bench.hf.jobs.get(id)));
    expect(left.map((job) => job?.state)).toEqual([undefined, "done", "done"]);
    const { runs } = await bench.hf.janitor.history({ chore: "purge-finished" });
    expect(runs.map(({ rows }) => rows)).toEqual([{ done: 1 }, { cancelled: 1 }]);
  });

  test("purge-finished: a job that was cancelled while it ran is kept like any other that was cancelled", async () => {
    const held = makeHeldKind<null>({ queue: "brief" });
    const worker = await bench.hf.work([held.kind]);
    const { id } = await bench.hf.enqueue(held.kind, null);
    await held.started();
    await bench.hf.jobs.cancel(id);
    held.release();
    // It finished all the same: that is what counts.
    expect(await ended(bench.hf, id)).toMatchObject({ state: "done" });
    const stubborn = makeKind({
      queue: "brief",
      run: (job) =>
        new Promise((_, reject) => job.signal.addEventListener("abort", () => reject(new Error("stopped")))),
    });
    const other = await bench.hf.work([stubborn]);
    const asked = await bench.hf.enqueue(stubborn, null);
    await until("it runs", async () => (await bench.hf.jobs.get(asked.id))?.state === "running");
    await bench.hf.jobs.cancel(asked.id);
    expect(await ended(bench.hf, asked.id)).toMatchObject({ state: "cancelled" });
    await Promise.all([worker.stop(), other.stop()]);
    await bench.hf.clock.advance("61s");
    await run("purge-finished");
    expect(await bench.hf.jobs.get(asked.id)).toBeUndefined();
    expect(await bench.hf.jobs.get(id)).toMatchObject({ state: "done" });
    await bench.hf.clock.advance("1h");
    await run("purge-finished");
  });

  test("purge-finished: a job in another queue than its kind's is kept as that queue says", async () => {
    const [plain, own] = [makeKind(), makeKind({ keepDone: "2h" })];
    const { id } = await bench.hf.enqueue(plain, 1, { queue: "brief" });
    const { id: itsOwn } = await bench.hf.enqueue(own, 1, { queue: "brief" });
    await runDue(bench.hf, [plain, own]);
    await bench.hf.clock.advance("61m");
    await run("purge-finished");
    expect(await bench.hf.jobs.get(id)).toBeUndefined();
    // What the kind says for itself wins.
    expect(await bench.hf.jobs.get(itsOwn)).toMatchObject({ state: "done" });
    await bench.hf.clock.advance("1h");
    await run("purge-finished");
    expect(await bench.hf.jobs.get(itsOwn)).toBeUndefined();
  });

  test("drop-days: a day with jobs that stay loses the others, a day after they were due; it is read once", async () => {
    await bench.hf.clock.advance("3d");
    const [stays, goes] = [makeKind({ queue: "eternal" }), makeKind()];
    const kept = await bench.hf.enqueue(stays, 1);
    const purged = await bench.hf.enqueue(goes, 2);
    await runDue(bench.hf, [stays, goes]);
    await bench.hf.clock.advance("2d");
    expect(await run("drop-days")).not.toHaveProperty("purged");
    const known = await knownDays(bench.store);
    expect([...known.values()].some((day) => day.known && !day.canDrop)).toBe(true);
    await bench.hf.clock.advance("5d");
    await run("drop-days");
    expect(await bench.hf.jobs.get(purged.id)).toMatchObject({ state: "done" });
    await bench.hf.clock.advance("3d");
    expect(await run("drop-days")).toMatchObject({ purged: expect.any(Number) });
    expect(await bench.hf.jobs.get(purged.id)).toBeUndefined();
    expect(await bench.hf.jobs.get(kept.id)).toMatchObject({ state: "done" });
  });

  test("drop-days: goes on where a walk through a large day was cut short, and deletes nothing on its first", async () => {
    const kind = makeKind();
    await bench.hf.enqueueMany(
      kind,
      Array.from({ length: 500 }, () => ({ payload: "x".repeat(200) })),
    );
    await runDue(bench.hf, [kind]);
    await bench.hf.clock.advance("30d");
    const leaf = (await listLeaves(bench.store)).filter(({ isOver, pages }) => isOver && pages > 8).at(-1)!;
    const before = await count(leaf.name);
    expect(await walkLeaf(bench.store, { leaf, fromPage: 0, pages: 4, purge: false })).toBe(0);
    expect((await knownDays(bench.store)).get(leaf.day)).toMatchObject({ walked: 4, known: false, canDrop: false });
    expect(await count(leaf.name)).toBe(before);
    expect((await run("drop-days"))["days"]).toBeGreaterThan(0);
    expect((await listLeaves(bench.store)).map(({ day }) => day)).not.toContain(leaf.day);
    expect((await knownDays(bench.store)).has(leaf.day)).toBe(false);
  });

  test("drop-days: finishes what somebody began and did not finish", async () => {
    await bench.db.query("create table holdfast.job_history_20200101 (like holdfast.job_history)");
    expect(await run("drop-days")).toMatchObject({ days: 1 });
    expect((await listLeaves(bench.store)).map(({ day }) => day)).not.toContain("2020-01-01");
  });

  test("purge-dead: only where the queue says so, counted from the last attempt; all others stay", async () => {
    const [brief, plain] = [failing({ queue: "brief" }), failing()];
    const ids = await Promise.all([brief, plain].map(async (kind) => (await bench.hf.enqueue(kind, 1)).id));
    await runDue(bench.hf, [brief, plain]);
    await bench.hf.clock.advance("47h");
    expect(await run("purge-dead")).toEqual({});
    await bench.hf.clock.advance("2h");
    expect(await rowsOf("purge-dead")).toEqual({ dead: 1 });
    expect(await run("purge-dead")).toEqual({ dead: 1 });
    await bench.hf.clock.advance("3650d");
    await run("purge-dead");
    const left = await Promise.all(ids.map((id) => bench.hf.jobs.get(id)));
    expect(left.map((job) => job?.state)).toEqual([undefined, "dead"]);
  });

  test("expire-keys: passes by the keys of jobs that wait or are dead, however many are in front", async () => {
    const [waiting, over] = [makeKind(), makeKind()];
    const rows = Array.from({ length: 2_500 }, (_, n) => ({ payload: n, key: `k${n}` }));
    const alive = rows.slice(0, 1_500).map((row) => ({ ...row, delay: "3650d" as const }));
    await bench.hf.enqueueMany(waiting, alive);
    await bench.hf.enqueueMany(over, rows.slice(0, 10));
    await runDue(bench.hf, [over]);
    await bench.hf.clock.advance("31d");
    const before = await count("job_keys");
    expect(await rowsOf("expire-keys")).toMatchObject({ expired: expect.any(Number) });
    expect(await count("job_keys")).toBe(before);
    await run("expire-keys");
    await run("expire-keys");
    const { rows: left } = await bench.db.query<{ kind: string; n: number }>(
      "select kind, count(*)::integer as n from holdfast.job_keys where kind = any($1) group by kind",
      [[waiting.kind, over.kind]],
    );
    expect(left).toEqual([{ kind: waiting.kind, n: 1_500 }]);
    await bench.db.query("delete from holdfast.jobs where kind = $1", [waiting.kind]);
  });

  test("forget-attempts: attempts of jobs that can still be read stay, those of others go", async () => {
    let tries = 0;
    const kind = makeKind({
      attempts: 2,
      backoff: ["0s"],
      keepDone: "1h",
      run: () => {
        if ((tries += 1) === 1) throw new Error("once");
      },
    });
    const dead = failing();
    const [done, kept] = [await bench.hf.enqueue(kind, 1), await bench.hf.enqueue(dead, 1)];
    await runDue(bench.hf, [kind, dead]);
    await run("forget-attempts");
    expect(await bench.hf.jobs.attempts(done.id)).toHaveLength(1);
    await bench.hf.clock.advance("61m");
    await run("purge-finished");
    await run("forget-attempts");
    expect(await bench.hf.jobs.attempts(done.id)).toEqual([]);
    expect(await bench.hf.jobs.attempts(kept.id)).toHaveLength(1);
  });

  test("remove-dead-workers: those that were not heard of for five minutes", async () => {
    await bench.db.query(
      `insert into holdfast.workers select gen_random_uuid(), 'w' || n, now(), holdfast.clock() - make_interval(mins => n), 1, '{}'
       from unnest(array[4, 6]) n`,
    );
    expect(await rowsOf("remove-dead-workers")).toEqual({ removed: 1 });
    expect(await run("remove-dead-workers")).toEqual({ removed: 1 });
    const { rows } = await bench.db.query("select name from holdfast.workers where name in ('w4', 'w6')");
    expect(rows).toEqual([{ name: "w4" }]);
    await bench.db.query("delete from holdfast.workers where name = 'w4'");
  });

  test("measure-queues: writes how deep the queues are, when that changed; zero is a figure too", async () => {
    const queue = uniqueName("queue");
    const kind = makeKind({ queue });
    await bench.hf.enqueueMany(kind, [{ payload: 1 }, { payload: 2 }, { payload: 3, delay: "1h" }]);
    await run("measure-queues");
    const depth = async () => (await latestDepths(bench.store)).find((found) => found.queue === queue);
    expect(await depth()).toMatchObject({ ready: 2, scheduled: 1, running: 0, dead: 0, estimated: false });
    expect((await depth())!.oldestReadyAt).toBeInstanceOf(Date);
    const { takenAt } = (await depth())!;
    await run("measure-queues");
    expect((await depth())!.takenAt).toEqual(takenAt);
    await bench.hf.clock.advance("2h");
    await runDue(bench.hf, [kind]);
    await run("measure-queues");
    expect(await depth()).toMatchObject({ ready: 0, scheduled: 0, oldestReadyAt: null });
  });

  test("vacuum, make-partitions, roll-up and trim-history do no harm", async () => {
    for (const chore of ["vacuum", "make-partitions", "roll-up", "trim-history", "forget-notes"]) await run(chore);
    expect(await countDepths(bench.store)).toBeInstanceOf(Array);
    const { rows } = await bench.db.query<{ now: Date }>("select holdfast.clock() as now");
    const [to, from] = [rows[0]!.now, new Date(rows[0]!.now.getTime() - 3_600_000)];
    expect(await runSeries(bench.store, { from, to, queue: null, limit: 10, width: 60 })).toBeInstanceOf(Array);
  });

  test("trim-history: what the janitor did is kept for a month", async () => {
    const before = (await bench.hf.janitor.history({ limit: 1_000 })).runs.length;
    expect(before).toBeGreaterThan(0);
    await bench.hf.clock.advance("31d");
    await run("trim-history");
    const { runs } = await bench.hf.janitor.history({ limit: 1_000 });
    expect(runs.map(({ chore }) => chore)).toEqual(["trim-history"]);
  });

  test("history: newest first, by pages", async () => {
    const kind = makeKind({ queue: "brief" });
    for (let n = 0; n < 3; n += 1) {
      await bench.hf.enqueue(kind, n);
      await runDue(bench.hf, [kind]);
      await bench.hf.clock.advance("2h");
      await run("purge-finished");
    }
    const first = await bench.hf.janitor.history({ chore: "purge-finished", limit: 2 });
    expect(first.runs).toHaveLength(2);
    const second = await bench.hf.janitor.history({ chore: "purge-finished", limit: 2, cursor: first.next! });
    expect(second.runs.length).toBeGreaterThan(0);
    expect(Number(second.runs[0]!.id)).toBeLessThan(Number(first.runs[1]!.id));
  });

  test("a chore that does not exist is refused, with the names of those that do", async () => {
    await expect(bench.hf.janitor.run("sweep")).rejects.toThrow('There is no chore "sweep".');
    await expect(bench.hf.janitor.preview("sweep")).rejects.toMatchObject({
      hint: expect.stringContaining("purge-finished"),
    });
  });
});

test("a run that did something is one line in the log, one that did nothing is none, and one that failed is a warning", async () => {
  const lines: unknown[] = [];
  const note =
    (level: string) =>
    (message: string, fields: object = {}): void =>
      void lines.push([level, message, Object.keys(fields)]);
  const log = { debug: note("debug"), info: note("info"), warn: note("warn"), error: note("error") };
  const hf = await openTest({ database: "memory:", log });
  let rows = 2;
  hf.janitor.add(
    defineChore("sweep", {
      every: "1h",
      run: (context) => {
        context.count("swept", rows);
        context.count("kept", rows && 1);
      },
    }),
  );
  hf.janitor.add(
    defineChore("stumble", {
      every: "1h",
      run: () => {
        throw new Error("no broom");
      },
    }),
  );
  await hf.janitor.run("sweep");
  rows = 0;
  await hf.janitor.run("sweep");
  await hf.janitor.run("stumble");
  await hf.close();
  expect(lines).toEqual([
    ["info", "Janitor: sweep: swept 2, kept 1", ["chore", "rows", "tookMs"]],
    ["warn", "Trouble in janitor: stumble", ["error"]],
  ]);
});
