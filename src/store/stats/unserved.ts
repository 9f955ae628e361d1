// What is due and has no worker, and leases that are overdue: from the first of each lane, and from tiny tables.
import { IS_KIND, KIND_HASH } from "../jobs/lane.ts";
import { routine, sql, type Store } from "../sql.ts";

export interface UnservedKind {
  kind: string;
  queue: string;
  since: Date;
}

const SHORT = sql`select set_config('statement_timeout', '500ms', true)`;

const UNSERVED = routine({
  name: "unserved_kinds",
  takes: ["integer"],
  gives: `kind text, queue text, since timestamptz`,
  body: `with recursive kinds as (
    (select j.kind, 1 as n from :schema.jobs j where j.hold = 0 order by ${KIND_HASH("j.kind")} limit 1)
    union all
    select next.kind, k.n + 1 from kinds k cross join lateral (
      select j.kind from :schema.jobs j where j.hold = 0 and ${KIND_HASH("j.kind")} > ${KIND_HASH("k.kind")}
      order by ${KIND_HASH("j.kind")} limit 1
    ) next where k.n < 1000
  ),
  served as materialized (
    select distinct unnest(w.kinds) collate "C" as kind from :schema.workers w
    where w.beat_at > :schema.clock() - interval '1 minute'
  )
  select k.kind, h.queue, h.run_at from kinds k cross join lateral (
    select j.queue, j.run_at from :schema.jobs j
    where j.hold = 0 and ${IS_KIND("k.kind")} and j.state = 'pending' order by j.rank, j.run_at, j.id limit 1
  ) h
  where k.kind not in (select s.kind from served s) and h.run_at < :schema.clock() - interval '5 seconds'
    and not exists (select 1 from :schema.queues q where q.name = h.queue and q.paused_at is not null)
  order by h.run_at limit $1`,
});

/** Kinds of which a job is due and no worker is there. Behind a held snapshot the look may take long: then none. */
export async function unservedKinds(store: Store, limit: number): Promise<UnservedKind[]> {
  try {
    return await store.transaction(async (tx) => {
      await tx.query(SHORT);
      return (await tx.query<UnservedKind>(UNSERVED, [limit])).rows;
    });
  } catch {
    return [];
  }
}

const OVERDUE = sql`
select count(*)::integer as count from (
  select 1 from :schema.leases where expires_at < :schema.clock() - interval '5 seconds' order by expires_at limit 1000) l`;

/** Leases that are over and that nobody has ended yet. */
export async function countOverdue(store: Store): Promise<number> {
  return (await store.query<{ count: number }>(OVERDUE)).rows[0]!.count;
}

const OUTCOMES = sql`
select queue, coalesce(sum(runs), 0)::float8 as runs,
  coalesce(sum(runs) filter (where outcome in ('retry', 'dead', 'error')), 0)::float8 as failures,
  coalesce(sum(runs) filter (where outcome = 'dead'), 0)::float8 as deaths
from :schema.run_counts where width = 60 and at >= :schema.clock() - $1 * interval '1 minute' group by queue order by queue`;

export interface QueueOutcomes {
  queue: string;
  runs: number;
  failures: number;
  deaths: number;
}

/** Of the last minutes. */
export async function outcomesOf(store: Store, minutes: number): Promise<QueueOutcomes[]> {
  return (await store.query<QueueOutcomes>(OUTCOMES, [minutes])).rows;
}
