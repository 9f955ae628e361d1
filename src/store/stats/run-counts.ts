// What runs came to, by minute and by hour: the source of every chart. Each process adds what it counted itself.
import { routine, sql, type Store } from "../sql.ts";
import type { SeriesInput } from "./depths.ts";

export interface RunCount {
  queue: string;
  kind: string;
  outcome: string;
  runs: number;
  /** From due to started, all together. */
  waitMs: number;
  runMs: number;
}

const ADD = sql`
insert into :schema.run_counts as r (width, at, queue, kind, outcome, runs, wait_ms, run_ms)
select 60, date_trunc('minute', :schema.clock(), 'UTC'), c.queue, c.kind, c.outcome, c.runs, c."waitMs", c."runMs"
from jsonb_to_recordset($1::text::jsonb) as c (queue text, kind text, outcome text, runs bigint, "waitMs" bigint,
  "runMs" bigint)
order by c.queue collate "C", c.kind collate "C", c.outcome collate "C"
on conflict (width, at, queue, kind, outcome) do update set runs = r.runs + excluded.runs,
  wait_ms = r.wait_ms + excluded.wait_ms, run_ms = r.run_ms + excluded.run_ms`;

export async function addRunCounts(store: Store, counts: readonly RunCount[]): Promise<void> {
  if (counts.length > 0) await store.query(ADD, [JSON.stringify(counts)]);
}

// Hours that are over; again for some hours back, because a process may have added late.
const ROLL_UP = routine({
  name: "roll_up_hours",
  takes: [],
  gives: "count",
  body: `insert into :schema.run_counts (width, at, queue, kind, outcome, runs, wait_ms, run_ms)
select 3600, date_trunc('hour', at, 'UTC'), queue, kind, outcome, sum(runs), sum(wait_ms), sum(run_ms)
from :schema.run_counts
where width = 60 and at >= date_trunc('hour', :schema.clock(), 'UTC') - interval '6 hours'
  and at < date_trunc('hour', :schema.clock(), 'UTC')
group by 2, queue, kind, outcome order by 2, queue, kind, outcome
on conflict (width, at, queue, kind, outcome) do update set runs = excluded.runs, wait_ms = excluded.wait_ms,
  run_ms = excluded.run_ms
where run_counts.runs <> excluded.runs`,
});

export async function rollUpHours(store: Store): Promise<number> {
  return Number((await store.query<{ count: string }>(ROLL_UP)).rows[0]!.count);
}

/** Minutes for two days, hours for 90. */
const TRIM = routine({
  name: "trim_run_counts",
  takes: ["integer"],
  gives: "count",
  body: `delete from :schema.run_counts where ctid = any(array(
  select old.ctid from (values (60, interval '48 hours'), (3600, interval '90 days')) as w (width, keep)
  cross join lateral (
    select r.ctid from :schema.run_counts r where r.width = w.width and r.at < :schema.clock() - w.keep order by r.at limit $1
  ) old limit $1))`,
});

export async function trimRunCounts(store: Store, limit: number): Promise<number> {
  return Number((await store.query<{ count: string }>(TRIM, [limit])).rows[0]!.count);
}

const SERIES = sql`
select at, queue, outcome, sum(runs)::float8 as runs, sum(wait_ms)::float8 as "waitMs", sum(run_ms)::float8 as "runMs"
from :schema.run_counts
where width = $5 and at >= $1 and at < $2 and ($3::text is null or queue = $3)
group by at, queue, outcome order by at, queue, outcome limit $4`;

export interface RunPoint extends Omit<RunCount, "kind"> {
  at: Date;
}

export async function runSeries(store: Store, input: SeriesInput & { width: 60 | 3600 }): Promise<RunPoint[]> {
  const { from, to, queue, limit, width } = input;
  return (await store.query<RunPoint>(SERIES, [from.toISOString(), to.toISOString(), queue, limit, width])).rows;
}
