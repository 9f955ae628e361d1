// What /metrics says, after real work; and that nothing which listens can break it.
import { execFileSync, spawnSync } from "node:child_process";
import { describe, expect, test } from "vitest";
import { runDue } from "#src/testing/run-due.js";
import { makeTally } from "#src/metrics/tally.js";
import { latestVersion } from "#src/migrate/migrate.js";
import { collect, ended, times } from "../support/events.ts";
import { makeKind } from "../support/make.ts";
import { TIERS, useHoldfast } from "../support/open-test.ts";

describe.each(TIERS)("metrics (%s)", (tier) => {
  const bench = useHoldfast(tier);
  const value = (text: string, series: string): number | undefined => {
    const line = text.split("\n").find((row) => row.startsWith(`${series} `));
    return line === undefined ? undefined : Number(line.slice(series.length + 1));
  };

  test("runs are counted by outcome, from zero; rows and runs of chores apart; gauges come from the roll-up", async () => {
    const { metrics } = bench.hf;
    let tries = 0;
    const kind = makeKind({
      queue: "mail",
      attempts: 2,
      backoff: ["0s"],
      run: () => {
        if ((tries += 1) === 1) throw new Error("once");
      },
    });
    const worker = await bench.hf.work([kind], { concurrency: 7 });
    const at = `queue="mail",kind="${kind.kind}"`;
    const before = await metrics.text();
    expect(value(before, `holdfast_jobs_finished_total{${at},outcome="dead"}`)).toBe(0);
    expect(value(before, `holdfast_jobs_enqueued_total{${at},result="duplicate"}`)).toBe(0);
    expect(value(before, `holdfast_worker_slots{queue="mail"}`)).toBe(7);
    await bench.hf.enqueue(kind, 1, { key: "k" });
    await bench.hf.enqueue(kind, 1, { key: "k" });
    await runDue(bench.hf, [kind]);
    await bench.hf.enqueue(kind, 2, { delay: "1h" });
    await bench.hf.janitor.run("measure-queues");
    const after = await metrics.text();
    expect(value(after, `holdfast_jobs_enqueued_total{${at},result="inserted"}`)).toBe(2);
    expect(value(after, `holdfast_jobs_enqueued_total{${at},result="duplicate"}`)).toBe(1);
    expect(value(after, `holdfast_jobs_finished_total{${at},outcome="retry"}`)).toBe(1);
    expect(value(after, `holdfast_jobs_finished_total{${at},outcome="done"}`)).toBe(1);
    expect(value(after, `holdfast_job_run_seconds_count{${at},outcome="done"}`)).toBe(1);
    expect(value(after, `holdfast_job_wait_seconds_count{${at}}`)).toBe(2);
    expect(value(after, `holdfast_queue_jobs{queue="mail",status="scheduled"}`)).toBe(1);
    expect(value(after, `holdfast_queue_jobs{queue="mail",status="ready"}`)).toBe(0);
    expect(value(after, `holdfast_queue_paused{queue="mail"}`)).toBe(0);
    expect(value(after, `holdfast_janitor_runs_total{chore="measure-queues",result="ok"}`)).toBeGreaterThan(0);
    expect(value(after, `holdfast_janitor_runs_total{chore="measure-queues",result="error"}`)).toBe(0);
    expect(value(after, "holdfast_workers")).toBe(1);
    expect(value(after, "holdfast_loops_stopped")).toBe(0);
    expect(value(after, "holdfast_lease_min_remaining_ratio")).toBeGreaterThan(0);
    await worker.stop();
    // What this process did is in the roll-up too, for charts.
    await bench.hf.janitor.run("add-run-counts");
    const runs = await bench.hf.stats.runs({ queue: "mail", to: new Date(Date.now() + 60_000) });
    expect(runs.map(({ outcome, runs: count }) => [outcome, count])).toEqual([
      ["done", 1],
      ["retry", 1],
    ]);
  });

  test("claims by what came, their sizes, how long enqueues took, wake-ups by where they came from", async () => {
    const { metrics } = bench.hf;
    const kind = makeKind({ run: () => null });
    const before = await metrics.text();
    for (const series of [
      'claims_total{result="error"}',
      'wake_ups_total{from="elsewhere"}',
      "claim_size_count",
      "enqueue_seconds_count",
    ]) {
      expect(value(before, `holdfast_${series}`), series).toBeDefined();
    }
    // One statement for forty, and what waited is taken by asking.
    const rows = Array.from({ length: 40 }, (_, payload) => ({ payload }));
    const { events: claims } = collect(bench.hf, "claim.made");
    await bench.hf.enqueueMany(kind, rows);
    const worker = await bench.hf.work([kind], { concurrency: 25 });
    await runDue(bench.hf, [kind]);
    await worker.stop();
    const after = await metrics.text();
    const grown = (series: string): number =>
      value(after, `holdfast_${series}`)! - value(before, `holdfast_${series}`)!;
    expect(grown("enqueue_seconds_count")).toBe(1);
    expect(grown('wake_ups_total{from="here"}')).toBeGreaterThan(0);
    const some = claims.filter(({ jobs }) => jobs > 0);
    expect(some.reduce((sum, { jobs }) => sum + jobs, 0)).toBe(40);
    expect(grown('claims_total{result="some"}')).toBe(some.length);
    expect(grown('claims_total{result="none"}')).toBe(claims.length - some.length);
    expect(grown("claim_size_sum")).toBe(40);
    expect(grown('claim_size_bucket{le="20"}')).toBe(some.filter(({ jobs }) => jobs <= 20).length);
  });

  test("beats are counted by what they found, errors of handlers by their class", async () => {
    const { metrics } = bench.hf;
    const before = await metrics.text();
    for (const result of ["ok", "lost", "error"]) {
      expect(value(before, `holdfast_lease_renewals_total{result="${result}"}`)).toBeDefined();
    }
    const kind = makeKind({
      lease: "300ms",
      attempts: 1,
      async run() {
        await new Promise((resolve) => setTimeout(resolve, 700));
        throw new TypeError("no");
      },
    });
    const { events: beats } = collect(bench.hf, "lease.beat");
    const { id } = await bench.hf.enqueue(kind, 1);
    const worker = await bench.hf.work([kind]);
    await times(bench.hf, "lease.beat", 1);
    const during = await metrics.text();
    expect(await ended(bench.hf, id)).toMatchObject({ state: "dead" });
    const after = await metrics.text();
    const grown = (series: string): number => value(after, series)! - value(before, series)!;
    expect(beats.length).toBeGreaterThan(1);
    expect(grown(`holdfast_lease_renewals_total{result="ok"}`)).toBe(
      beats.reduce((sum, beat) => sum + beat.renewed, 0),
    );
    expect(grown("holdfast_lease_renewal_seconds_count")).toBe(beats.length);
    expect(value(after, `holdfast_handler_errors_total{queue="default",kind="${kind.kind}",error="TypeError"}`)).toBe(
      1,
    );
    expect(value(after, "holdfast_schema_version")).toBe(latestVersion());
    expect(value(during, "holdfast_leases")).toBe(1);
    await worker.stop();
    expect(value(await metrics.text(), "holdfast_leases")).toBe(0);
  });

  test("figures of one's own are told with the others; what fails is left out; what was taken back is not told", async () => {
    const { hf } = bench;
    const stops = [
      hf.metrics.add(() => "guests_total 3"),
      hf.metrics.add(() => Promise.reject(new Error("not now"))),
      hf.metrics.add(() => "after_it 1\n"),
    ];
    const text = await hf.metrics.text();
    expect(text).toMatch(/\nguests_total 3\nafter_it 1\n$/);
    expect(text).toContain("holdfast_info");
    for (const stop of stops) stop();
    expect(await hf.metrics.text()).not.toContain("guests_total");
  });

  test("promtool finds nothing wrong with the text", async ({ skip }) => {
    try {
      execFileSync("promtool", ["--version"], { stdio: "ignore" });
    } catch {
      skip("promtool is not installed; Debian has it in the package prometheus");
    }
    const { status, stderr } = spawnSync("promtool", ["check", "metrics"], { input: await bench.hf.metrics.text() });
    expect(stderr.toString()).toBe("");
    expect(status).toBe(0);
  });

  test("a listener that throws breaks nothing", async () => {
    const stop = bench.hf.on("job.done", () => {
      throw new Error("listener");
    });
    const kind = makeKind();
    await bench.hf.enqueue(kind, 1);
    await runDue(bench.hf, [kind]);
    stop();
    expect(
      value(
        await bench.hf.metrics.text(),
        `holdfast_jobs_finished_total{queue="default",kind="${kind.kind}",outcome="done"}`,
      ),
    ).toBe(1);
  });

  test("health: alive, healthy, and the name of a chore that keeps failing", async () => {
    expect(bench.hf.health.live()).toEqual({ isAlive: true, stopped: [] });
    await bench.db.query(
      "insert into holdfast.chores (name, next_at, failures, error) values ('broken', now(), 3, 'no')",
    );
    expect(await bench.hf.health.check()).toMatchObject({
      health: "degraded",
      failingChores: [{ chore: "broken", failures: 3, error: "no" }],
    });
    await bench.db.query("delete from holdfast.chores where name = 'broken'");
  });
});

test("a tally gives what was counted once, and takes it back when it could not be stored", () => {
  const tally = makeTally();
  for (let n = 0; n < 3; n += 1) tally.count("q", "k", "done", 2, 5);
  tally.count("q", "k", "dead", 1, 1);
  const taken = tally.take();
  expect(taken).toMatchObject([
    { queue: "q", kind: "k", outcome: "done", runs: 3, waitMs: 6, runMs: 15 },
    { queue: "q", kind: "k", outcome: "dead", runs: 1, waitMs: 1, runMs: 1 },
  ]);
  expect(tally.take()).toEqual([]);
  tally.count("q", "k", "done", 1, 1);
  tally.putBack(taken);
  expect(tally.take()[0]).toMatchObject({ outcome: "done", runs: 4, waitMs: 7, runMs: 16 });
});
