// How deep the queues are. Counted by one chore for everybody, and read from what it wrote: screens and metrics never
// count. A large table is not counted either: a fixed part of it is, and the rest is estimated from that.
import { quoteSchema } from "../../shared/quote-schema.ts";
import { KIND_HASH } from "../jobs/lane.ts";
import { LIGHT_IDS } from "../jobs/mark.ts";
import { routine, sql, type Store } from "../sql.ts";

export interface Depth {
  queue: string;
  ready: number;
  scheduled: number;
  retrying: number;
  running: number;
  dead: number;
  /** Waits because its queue is paused. */
  paused: number;
  /** When the job that has been due for longest became so; null when nothing waits. */
  oldestReadyAt: Date | null;
  estimated: boolean;
}

/** As far as a count takes some tens of milliseconds. */
const EXACT_PAGES = 8_000;
const SAMPLE_PAGES = 2_000;

const PAGES = sql`
select (pg_relation_size($1::text::regclass) / current_setting('block_size')::integer)::integer as pages`;

const counts = (source: string): string => `
select j.queue,
  count(*) filter (where w.waits and p.name is null and j.attempt = 0 and w.due)::integer as ready,
  count(*) filter (where w.waits and p.name is null and j.attempt = 0 and not w.due)::integer as scheduled,
  count(*) filter (where w.waits and p.name is null and j.attempt > 0)::integer as retrying,
  count(*) filter (where j.state = 'running' or l.id is not null)::integer as running,
  count(*) filter (where j.state = 'dead')::integer as dead,
  count(*) filter (where w.waits and p.name is not null)::integer as paused,
  min(j.run_at) filter (where w.waits and p.name is null and w.due and j.hold in (0, 2)) as "oldestReadyAt"
from ${source}
left join :schema.queues p on p.name = j.queue and p.paused_at is not null
left join ${LIGHT_IDS} as l (id) on l.id = j.id
cross join lateral (select j.state = 'pending' and l.id is null as waits, j.run_at <= :schema.clock() as due) w
group by j.queue`;

const COUNT = sql`${counts(":schema.jobs j")}`;
const COUNT_SAMPLE = sql`${counts(":schema.jobs j tablesample system ($1::real)")}`;

// The first of each lane: a queue with few jobs may not be in the sample, and must not be overlooked.
const HEADS = sql`
with recursive lanes as (
  (select ${KIND_HASH("kind")} as hash, rank from :schema.jobs where hold = 0 order by ${KIND_HASH("kind")}, rank limit 1)
  union all
  select n.hash, n.rank from lanes l cross join lateral (
    select ${KIND_HASH("j.kind")} as hash, j.rank from :schema.jobs j
    where j.hold = 0 and (${KIND_HASH("j.kind")}, j.rank) > (l.hash, l.rank) order by ${KIND_HASH("j.kind")}, j.rank limit 1
  ) n
)
select h.queue, min(h.run_at) as "oldestReadyAt" from lanes l cross join lateral (
  select j.queue, j.run_at from :schema.jobs j
  where j.hold = 0 and ${KIND_HASH("j.kind")} = l.hash and j.rank = l.rank and j.state = 'pending' and j.id not in ${LIGHT_IDS}
  order by j.run_at, j.id limit 1
) h
left join :schema.queues p on p.name = h.queue and p.paused_at is not null
where h.run_at <= :schema.clock() and p.name is null group by h.queue`;

const SHORT = sql`select set_config('statement_timeout', '500ms', true)`;

export async function countDepths(store: Store): Promise<Depth[]> {
  const { rows } = await store.query<{ pages: number }>(PAGES, [`${quoteSchema(store.schema)}.jobs`]);
  const { pages } = rows[0]!;
  if (pages <= EXACT_PAGES) {
    const exact = await store.query<Omit<Depth, "estimated">>(COUNT);
    return exact.rows.map((depth) => ({ ...depth, estimated: false }));
  }
  return await estimateDepths(store, pages);
}

async function estimateDepths(store: Store, pages: number): Promise<Depth[]> {
  const percent = (100 * SAMPLE_PAGES) / pages;
  const sample = await store.query<Omit<Depth, "estimated">>(COUNT_SAMPLE, [percent]);
  const all = (count: number): number => Math.round((count * 100) / percent);
  const depths = new Map(
    sample.rows.map((depth) => [
      depth.queue,
      {
        ...depth,
        ready: all(depth.ready),
        scheduled: all(depth.scheduled),
        retrying: all(depth.retrying),
        running: all(depth.running),
        dead: all(depth.dead),
        paused: all(depth.paused),
        estimated: true,
      },
    ]),
  );
  for (const { queue, oldestReadyAt } of await heads(store)) {
    const known = depths.get(queue) ?? { ...nothing(queue), ready: 1, estimated: true };
    depths.set(queue, { ...known, ready: Math.max(known.ready, 1), oldestReadyAt });
  }
  return [...depths.values()];
}

/** Behind a held snapshot even the first of a lane may be far: then the sample has to do. */
async function heads(store: Store): Promise<{ queue: string; oldestReadyAt: Date }[]> {
  try {
    return await store.transaction(async (tx) => {
      await tx.query(SHORT);
      return (await tx.query<{ queue: string; oldestReadyAt: Date }>(HEADS)).rows;
    });
  } catch {
    return [];
  }
}

export function nothing(queue: string): Depth {
  return {
    queue,
    ready: 0,
    scheduled: 0,
    retrying: 0,
    running: 0,
    dead: 0,
    paused: 0,
    oldestReadyAt: null,
    estimated: false,
  };
}

/** The queues there are figures of, one index probe for each. */
const KNOWN = `with recursive known as (
  (select queue from :schema.queue_depths order by queue limit 1)
  union all
  select (select d.queue from :schema.queue_depths d where d.queue > k.queue order by d.queue limit 1)
  from known k where k.queue is not null
)`;

const LATEST = sql`
${KNOWN}
select l.queue, l.ready, l.scheduled, l.retrying, l.running, l.dead, l.paused, l.oldest_ready_at as "oldestReadyAt",
  l.estimated, l.taken_at as "takenAt"
from known k cross join lateral (
  select * from :schema.queue_depths d where d.queue = k.queue order by d.minute desc limit 1
) l`;

export interface TakenDepth extends Depth {
  takenAt: Date;
}

export async function latestDepths(store: Store): Promise<TakenDepth[]> {
  return (await store.query<TakenDepth>(LATEST)).rows;
}

const WRITE = sql`
insert into :schema.queue_depths as q (queue, minute, taken_at, ready, scheduled, retrying, running, dead, paused,
  oldest_ready_at, estimated)
select d.queue, date_trunc('minute', :schema.clock(), 'UTC'), :schema.clock(), d.ready, d.scheduled, d.retrying,
  d.running, d.dead, d.paused, d."oldestReadyAt", d.estimated
from jsonb_to_recordset($1::text::jsonb) as d (queue text, ready integer, scheduled integer, retrying integer,
  running integer, dead integer, paused integer, "oldestReadyAt" timestamptz, estimated boolean)
order by d.queue
on conflict (queue, minute) do update set taken_at = excluded.taken_at, ready = excluded.ready,
  scheduled = excluded.scheduled, retrying = excluded.retrying, running = excluded.running, dead = excluded.dead,
  paused = excluded.paused, oldest_ready_at = excluded.oldest_ready_at, estimated = excluded.estimated`;

export async function writeDepths(store: Store, depths: readonly Depth[]): Promise<void> {
  if (depths.length > 0) await store.query(WRITE, [JSON.stringify(depths)]);
}

const TRIM = routine({
  name: "trim_depths",
  takes: ["integer"],
  gives: "count",
  body: `${KNOWN}
delete from :schema.queue_depths where ctid = any(array(
  select old.ctid from known k cross join lateral (
    select d.ctid from :schema.queue_depths d where d.queue = k.queue and d.minute < :schema.clock() - interval '48 hours'
    order by d.minute limit $1
  ) old limit $1))`,
});

export async function trimDepths(store: Store, limit: number): Promise<number> {
  return Number((await store.query<{ count: string }>(TRIM, [limit])).rows[0]!.count);
}

const SERIES = sql`
${KNOWN}
select d.* from known k cross join lateral (
  select queue, minute as at, ready, scheduled, retrying, running, dead, paused from :schema.queue_depths
  where queue = k.queue and minute >= $1 and minute < $2
) d
where $3::text is null or k.queue = $3 order by d.at, d.queue limit $4`;

export interface DepthPoint extends Omit<Depth, "oldestReadyAt" | "estimated"> {
  at: Date;
}

export interface SeriesInput {
  from: Date;
  to: Date;
  queue: string | null;
  limit: number;
}

/** A queue keeps its last value until its next point: nothing is written while nothing changes. */
export async function depthSeries(store: Store, { from, to, queue, limit }: SeriesInput): Promise<DepthPoint[]> {
  return (await store.query<DepthPoint>(SERIES, [from.toISOString(), to.toISOString(), queue, limit])).rows;
}
