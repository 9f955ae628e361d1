// What waits and nobody does, for a person who asks whether all is well. By index, and capped.
import { sql, type Store } from "../sql.ts";

export interface WaitingKind {
  kind: string;
  queue: string;
  /** When the job that has been due for longest became so. */
  dueSince: Date;
  waitsForMs: number;
}

// The first of each kind: one index probe for each.
const WAITING_KINDS = sql`
with recursive kinds as (
  (select kind from :schema.jobs where hold = 0 order by kind limit 1)
  union all
  select (select j.kind from :schema.jobs j where j.hold = 0 and j.kind > k.kind order by j.kind limit 1)
  from kinds k where k.kind is not null
)
select h.kind, h.queue, h.run_at as "dueSince", (extract(epoch from :schema.clock() - h.run_at) * 1000)::float8 as "waitsForMs"
from kinds k cross join lateral (
  select j.kind, j.queue, j.run_at from :schema.jobs j
  where j.hold = 0 and j.kind = k.kind and j.state = 'pending' order by j.rank, j.run_at, j.id limit 1
) h
left join :schema.queues p on p.name = h.queue and p.paused_at is not null
where h.run_at < :schema.clock() and p.name is null
order by h.run_at limit 100`;

/** Kinds with jobs that are due, of queues that are not paused. */
export async function readWaitingKinds(store: Store): Promise<WaitingKind[]> {
  return (await store.query<WaitingKind>(WAITING_KINDS)).rows;
}

const SUSPECTS = sql`
select s.kind, count(*)::integer as jobs, max(s.crash_count)::integer as crashes
from (select kind, crash_count from :schema.jobs where hold in (2, 4) limit 1000) s group by s.kind order by 2 desc limit 20`;

export interface Suspects {
  kind: string;
  jobs: number;
  /** The most often that one of them ended its process while it ran alone. */
  crashes: number;
}

/** Jobs whose process died while they ran. */
export async function readSuspects(store: Store): Promise<Suspects[]> {
  return (await store.query<Suspects>(SUSPECTS)).rows;
}
