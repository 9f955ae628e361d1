// What the janitor runs all day on large tables uses an index and reads a bounded number of rows: when much is due and when
// nothing is, in tables that were never analysed and in tables that were.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { listAudit } from "#src/store/audit/list.js";
import { purgeAudit } from "#src/store/audit/purge.js";
import { listRuns, trimRuns } from "#src/store/janitor/chore-history.js";
import { forgetRemains } from "#src/store/janitor/forget.js";
import { listLeaves, purgeLeaf, walkLeaf } from "#src/store/janitor/history-leaves.js";
import { expireKeys, purgeDead } from "#src/store/janitor/purge.js";
import { depthSeries, latestDepths, trimDepths } from "#src/store/stats/depths.js";
import { rollUpHours, runSeries, trimRunCounts } from "#src/store/stats/run-counts.js";
import { leaseGauges } from "#src/store/stats/gauges.js";
import type { Store } from "#src/store/sql.js";
import { Session } from "../support/explain.ts";
import { useHoldfast } from "../support/open-test.ts";

const ROWS = 150_000;
/** Not `workers`: it has as many rows as there are workers, and an index on what every beat changes would cost more. */
const WATCHED =
  /^(jobs|job_history(_\d+)?|job_keys|attempts|job_notes|job_saved_items|audit|chore_runs|queue_depths|run_counts|leases)$/;
const FIRST = "00000000-0000-0000-0000-000000000000";
const DAY_MS = 86_400_000;
const KEEP = [
  { queue: "q1", keepMs: 3_600_000 },
  { queue: "other", keepMs: 3_600_000 },
];

const id = (n: string): string => `('0000000a-0000-7000-8000-' || lpad(to_hex(${n}), 12, '0'))::uuid`;

const GROW = `
  set synchronous_commit = off;
  insert into holdfast.jobs (id, run_at, created_at, max_attempts, rank, kind, queue, payload, hold, state)
  select ${id("n")}, now(), now() - interval '1 day', 5, 0, 'k', 'q' || n % 5, '{}', case n % 3 when 0 then 3 else 0 end,
    case n % 3 when 0 then 'dead'::holdfast.job_state else 'pending' end from generate_series(1, ${ROWS}) n;
  insert into holdfast.job_keys (kind, key, job_id, payload_hash, created_at, expires_at)
  select 'k', 'key ' || n, ${id("n * 2")}, gen_random_uuid(), now(), now() + (n % 700 - 10) * interval '1 hour'
  from generate_series(1, ${ROWS}) n;
  insert into holdfast.attempts (job_id, claim_count, attempt, started_at, failed_at, outcome, error)
  select ${id("n * 2")}, 1, 1, now(), now() - interval '2 hours', 'retry', '{}' from generate_series(1, ${ROWS}) n;
  insert into holdfast.job_notes select ${id("n * 2")}, 'step', 'a', '1', now() from generate_series(1, ${ROWS}) n;
  insert into holdfast.job_saved_items select ${id("n * 2")}, 'a', 'b' from generate_series(1, ${ROWS}) n;
  insert into holdfast.audit (at, caller, action, target, status)
  select now() - (100 - n * 100.0 / ${ROWS}) * interval '1 day', 'a', 'b', 'c', 200 from generate_series(1, ${ROWS}) n;
  insert into holdfast.chore_runs (chore, started_at, took_ms, rows, run_by)
  select 'chore' || n % 10, now() - (40 - n * 40.0 / ${ROWS}) * interval '1 day', 1, '{}', 'x' from generate_series(1, ${ROWS}) n;
  insert into holdfast.queue_depths
  select 'q' || n % 50, date_trunc('minute', now()) - n / 50 * interval '1 minute', now(), 1, 1, 1, 1, 1, 0, null, false
  from generate_series(1, ${ROWS}) n;
  insert into holdfast.run_counts
  select 60, date_trunc('minute', now()) - n / 50 * interval '1 minute', 'q' || n % 50, 'k', 'done', 1, 1, 1
  from generate_series(1, ${ROWS}) n;
  insert into holdfast.job_history (id, finished_at, created_at, run_at, started_at, purge_at, purge_early, token, attempt,
    max_attempts, claim_count, rank, state, kind, queue, payload)
  select ${id("n")}, date_trunc('day', now(), 'UTC') + n * interval '1 millisecond', now(), now(), now(),
    now() + (n % 700 - 10) * interval '1 hour', n % 2 = 0, n, 1, 5, 1, 0, case n % 4 when 0 then 'cancelled' else 'done' end::holdfast.job_state,
    'k', 'q' || n % 5, '{}'
  from generate_series(1, ${ROWS}) n;`;

const hourOf = (queue: string | null) => {
  const to = new Date(Date.now() - DAY_MS);
  return { from: new Date(to.getTime() - 3_600_000), to, queue, limit: 50_000 };
};

const today = async (store: Store) => (await listLeaves(store)).find(({ pages }) => pages > 100)!;

/** Name, how many rows it may read, what it does. Limits are 500 rows. */
const VERBS: [string, number, (store: Store) => Promise<unknown>][] = [
  ["expire keys", 3_000, (store) => expireKeys(store, 500)],
  ["expire keys, from a place on", 3_000, (store) => expireKeys(store, 500, new Date(Date.now() - 7_200_000))],
  ["purge dead jobs", 4_000, (store) => purgeDead(store, KEEP, 500, FIRST)],
  ["purge dead jobs where no queue says so", 2_500, (store) => purgeDead(store, [], 500, FIRST)],
  ["purge done and cancelled jobs early", 2_000, async (store) => purgeLeaf(store, await today(store), 500, undefined)],
  [
    "read some pages of a day",
    2_000,
    async (store) => walkLeaf(store, { leaf: await today(store), fromPage: 40, pages: 20, purge: true }),
  ],
  ["forget notes", 2_500, (store) => forgetRemains(store, "notes", 500, undefined)],
  ["forget saved items", 2_500, (store) => forgetRemains(store, "saved items", 500, undefined)],
  ["forget attempts", 4_000, (store) => forgetRemains(store, "attempts", 500, undefined)],
  ["purge the audit log", 1_500, (store) => purgeAudit(store, 500, 90 * DAY_MS)],
  ["purge the audit log when nothing is old", 500, (store) => purgeAudit(store, 500, 900 * DAY_MS)],
  ["trim what the janitor did", 1_500, (store) => trimRuns(store, 500, 30 * DAY_MS)],
  ["trim what the janitor did when nothing is old", 500, (store) => trimRuns(store, 500, 300 * DAY_MS)],
  ["trim depths", 1_500, (store) => trimDepths(store, 500)],
  ["trim run counts", 1_500, (store) => trimRunCounts(store, 500)],
  // Six hours of 50 queues, read once and compared with what is there.
  ["roll up hours", 6 * 60 * 50 * 2, (store) => rollUpHours(store)],
  ["read the newest depths", 500, (store) => latestDepths(store)],
  ["read depths of an hour", 60 * 50 + 200, (store) => depthSeries(store, hourOf(null))],
  ["read depths of a queue", 200, (store) => depthSeries(store, hourOf("q7"))],
  ["read runs of an hour", 60 * 50, (store) => runSeries(store, { ...hourOf(null), width: 60 })],
  ["read the audit log", 600, (store) => listAudit(store, "100000", 500)],
  // A person's question, of a table that keeps thirty days: the planner may read all there is of the chore.
  ["read what the janitor did", 10_500, (store) => listRuns(store, { chore: "chore3", before: "100000", limit: 500 })],
  ["read the leases' gauges", 1_000, (store) => leaseGauges(store)],
];

describe("the janitor's plans", () => {
  const bench = useHoldfast("server");
  let session: Session;

  beforeAll(async () => {
    session = await Session.open(bench.url, bench.store, WATCHED);
    // Analysed while there is nothing: the planner believes that there never will be.
    await bench.db.script("analyze");
    for (const table of ["jobs", "job_keys", "attempts", "audit", "chore_runs", "queue_depths", "run_counts"]) {
      await bench.db.script(`alter table holdfast.${table} set (autovacuum_enabled = off)`);
    }
    await bench.db.script(GROW, { timeoutMs: 120_000 });
  }, 150_000);
  afterAll(async () => {
    await session.client.end();
    await bench.db.script(
      "truncate holdfast.jobs, holdfast.job_history, holdfast.attempts, holdfast.job_keys, holdfast.job_notes, holdfast.job_saved_items",
    );
  });

  async function check(name: string, most: number, run: (store: Store) => Promise<unknown>): Promise<void> {
    const { seqScans, visited, detail } = await session.explain(run);
    expect(seqScans, `${name}: ${detail}`).toEqual([]);
    expect(visited, `${name}: ${detail}`).toBeLessThanOrEqual(most);
  }

  describe("on tables that were not analysed", () => {
    test.each(VERBS)("%s", check);
  });

  describe("on tables that were", () => {
    beforeAll(() => bench.db.script("vacuum analyze", { timeoutMs: 120_000 }), 150_000);
    test.each(VERBS)("%s", check);
  });
});
