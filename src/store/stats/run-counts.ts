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
  /** The n-th: how many took less than 2^n ms, and not less than half of that. */
  waits: readonly number[];
  durations: readonly number[];
}

const numbers = (json: string): string => `array(select v::bigint from jsonb_array_elements_text(${json}) as v)`;
const added = (column: string): string =>
  `array(select coalesce(a, 0) + coalesce(b, 0) from unnest(r.${column}, excluded.${column}) with ordinality as u (a, b, n) order by n)`;

const ADD = sql`
insert into :schema.run_counts as r (width, at, queue, kind, outcome, runs, wait_ms, run_ms, waits, durations)
select 60, date_trunc('minute', :schema.clock(), 'UTC'), c.queue, c.kind, c.outcome, c.runs, c."waitMs", c."runMs",
  ${numbers("c.waits")}, ${numbers("c.durations")}
from jsonb_to_recordset($1::text::jsonb) as c (queue text, kind text, outcome text, runs bigint, "waitMs" bigint,
  "runMs" bigint, waits jsonb, durations jsonb)
order by c.queue collate "C", c.kind collate "C", c.outcome collate "C"
on conflict (width, at, queue, kind, outcome) do update set runs = r.runs + excluded.runs,
  wait_ms = r.wait_ms + excluded.wait_ms, run_ms = r.run_ms + excluded.run_ms, waits = ${added("waits")},
  durations = ${added("durations")}`;

export async function addRunCounts(store: Store, counts: readonly RunCount[]): Promise<void> {
  if (counts.length > 0) await store.query(ADD, [JSON.stringify(counts)]);
}

// Hours that are over; again for some hours back, because a process may have added late.
const ROLL_UP = routine({
  name: "roll_up_hours",
  takes: [],
  gives: "count",
  body: `with minutes as materialized (
  select date_trunc('hour', at, 'UTC') as at, queue, kind, outcome, runs, wait_ms, run_ms, waits, durations
  from :schema.run_counts
  where width = 60 and at >= date_trunc('hour', :schema.clock(), 'UTC') - interval '6 hours'
    and at < date_trunc('hour', :schema.clock(), 'UTC')
),
sums as (
  select at, queue, kind, outcome, sum(runs) as runs, sum(wait_ms) as wait_ms, sum(run_ms) as run_ms
  from minutes group by at, queue, kind, outcome
),
classes as (
  select at, queue, kind, outcome, array_agg(waits order by n) as waits, array_agg(durations order by n) as durations
  from (
    select m.at, m.queue, m.kind, m.outcome, u.n, sum(coalesce(u.w, 0))::bigint as waits, sum(coalesce(u.d, 0))::bigint as durations
    from minutes m cross join lateral unnest(m.waits, m.durations) with ordinality as u (w, d, n)
    group by m.at, m.queue, m.kind, m.outcome, u.n
  ) c group by at, queue, kind, outcome
)
insert into :schema.run_counts (width, at, queue, kind, outcome, runs, wait_ms, run_ms, waits, durations)
select 3600, s.at, s.queue, s.kind, s.outcome, s.runs, s.wait_ms, s.run_ms, coalesce(c.waits, '{}'), coalesce(c.durations, '{}')
from sums s left join classes c using (at, queue, kind, outcome) order by s.at, s.queue, s.kind, s.outcome
on conflict (width, at, queue, kind, outcome) do update set runs = excluded.runs, wait_ms = excluded.wait_ms,
  run_ms = excluded.run_ms, waits = excluded.waits, durations = excluded.durations
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

export interface RunPoint extends Omit<RunCount, "kind" | "waits" | "durations"> {
  at: Date;
}

export async function runSeries(store: Store, input: SeriesInput & { width: 60 | 3600 }): Promise<RunPoint[]> {
  const { from, to, queue, limit, width } = input;
  return (await store.query<RunPoint>(SERIES, [from.toISOString(), to.toISOString(), queue, limit, width])).rows;
}

// Element by element: how many of each class, in steps of so many seconds.
const LATENCY = sql`
select at, array_agg(waits order by n) as waits, array_agg(durations order by n) as durations from (
  select date_bin($6 * interval '1 second', r.at, timestamptz 'epoch') as at, u.n, sum(coalesce(u.w, 0))::float8 as waits,
    sum(coalesce(u.d, 0))::float8 as durations
  from (
    select at, waits, durations from :schema.run_counts
    where width = $5 and at >= $1 and at < $2 and ($3::text is null or queue = $3) limit $4
  ) r cross join lateral unnest(r.waits, r.durations) with ordinality as u (w, d, n)
  group by 1, u.n
) c group by at order by at`;

export interface LatencyPoint {
  at: Date;
  waits: number[];
  durations: number[];
}

export async function latencySeries(
  store: Store,
  input: SeriesInput & { width: 60 | 3600; stepSeconds: number },
): Promise<LatencyPoint[]> {
  const { from, to, queue, limit, width, stepSeconds } = input;
  const values = [from.toISOString(), to.toISOString(), queue, limit, width, stepSeconds];
  return (await store.query<LatencyPoint>(LATENCY, values)).rows;
}

const KINDS = sql`
with rows as materialized (
  select queue, kind, outcome, runs, wait_ms, run_ms, waits, durations from :schema.run_counts
  where width = $5 and at >= $1 and at < $2 and ($3::text is null or queue = $3) limit $4
),
classes as (
  select queue, kind, array_agg(w order by n) as waits, array_agg(d order by n) as durations from (
    select r.queue, r.kind, u.n, sum(coalesce(u.w, 0))::float8 as w, sum(coalesce(u.d, 0))::float8 as d
    from rows r cross join lateral unnest(r.waits, r.durations) with ordinality as u (w, d, n) group by r.queue, r.kind, u.n
  ) c group by queue, kind
),
sums as (
  select queue, kind, sum(runs)::float8 as runs, coalesce(sum(runs) filter (where outcome in ('retry', 'dead', 'error')), 0)::float8 as failures,
    coalesce(sum(runs) filter (where outcome = 'dead'), 0)::float8 as deaths
  from rows group by queue, kind
)
select s.*, coalesce(c.waits, '{}') as waits, coalesce(c.durations, '{}') as durations
from sums s left join classes c using (queue, kind) order by s.runs desc, s.queue, s.kind limit 500`;

export interface KindFigures {
  queue: string;
  kind: string;
  runs: number;
  /** Of these, attempts that failed. */
  failures: number;
  deaths: number;
  waits: number[];
  durations: number[];
}

export async function kindFigures(store: Store, input: SeriesInput & { width: 60 | 3600 }): Promise<KindFigures[]> {
  const { from, to, queue, limit, width } = input;
  return (await store.query<KindFigures>(KINDS, [from.toISOString(), to.toISOString(), queue, limit, width])).rows;
}
