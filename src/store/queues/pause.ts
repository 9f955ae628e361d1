// Paused queues. A worker that knows of one gives back what it claimed of it; the settle sets it aside under a hold of its
// own, so that no claim walks past it again. Resuming lets it in again, a batch at a time.
import { sql, type Store } from "../sql.ts";

const PAUSE = sql`
insert into :schema.queues as q (name, paused_at, paused_by) values ($1, :schema.clock(), $2)
on conflict (name) do update set paused_at = excluded.paused_at, paused_by = excluded.paused_by
where q.paused_at is null
returning name`;

const RESUME = sql`
update :schema.queues set paused_at = null, paused_by = null where name = $1 and paused_at is not null returning name`;

const PAUSED = sql`
select name as queue, paused_at as "pausedAt", paused_by as "pausedBy"
from :schema.queues where paused_at is not null order by name`;

const LET_IN = sql`
with back as (
  select j.id, j.hold from :schema.jobs j where j.hold in (5, 6) and j.queue = any($1::text[])
  order by j.queue, j.id limit $2 for update of j skip locked
)
update :schema.jobs j set hold = case b.hold when 6 then 2 else 0 end from back b where j.id = b.id
returning 1`;

// From queue to queue, one look at the index for each: however much is set aside of one, it hides no other.
const FORGOTTEN = sql`
with recursive aside as (
  (select j.queue from :schema.jobs j where j.hold in (5, 6) order by j.queue limit 1)
  union all
  select (select j.queue from :schema.jobs j where j.hold in (5, 6) and j.queue > a.queue order by j.queue limit 1)
  from aside a where a.queue is not null
)
select a.queue from aside a
where a.queue is not null and not exists (select 1 from :schema.queues q where q.name = a.queue and q.paused_at is not null)
limit 1000`;

export interface PausedQueue {
  queue: string;
  pausedAt: Date;
  pausedBy: string | null;
}

/** False: it was paused already. */
export async function pauseQueue(store: Store, queue: string, by: string | null): Promise<boolean> {
  return (await store.query(PAUSE, [queue, by])).rowCount > 0;
}

/** False: it was not paused. */
export async function resumeQueue(store: Store, queue: string): Promise<boolean> {
  return (await store.query(RESUME, [queue])).rowCount > 0;
}

export async function pausedQueues(store: Store): Promise<PausedQueue[]> {
  return (await store.query<PausedQueue>(PAUSED)).rows;
}

/** Jobs of resumed queues become claimable again. */
export async function letIn(store: Store, queues: readonly string[], limit: number): Promise<number> {
  return (await store.query(LET_IN, [queues, limit])).rowCount;
}

/** Queues that are not paused and still have jobs set aside: a resume was cut short. */
export async function resumedQueues(store: Store): Promise<string[]> {
  return (await store.query<{ queue: string }>(FORGOTTEN)).rows.map((row) => row.queue);
}
