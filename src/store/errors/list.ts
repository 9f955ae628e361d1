// Errors by what they have in common: from the figures, newest first; and the dead by what killed them, from their index.
import { fingerprintIn } from "../jobs/rows.ts";
import { routine, type Store } from "../sql.ts";

export interface ErrorGroup {
  kind: string;
  fingerprint: string;
  queue: string;
  name: string;
  message: string;
  lastJobId: string;
  firstSeenAt: Date;
  lastSeenAt: Date;
  /** Failed attempts of the last hour, three hours, day, three days, seven days. */
  seen: number[];
  /** Dead jobs of the last seven days. */
  deaths: number;
}

const within = (interval: string): string =>
  `coalesce(sum(e.retries + e.deaths) filter (where e.at > :schema.clock() - interval '${interval}'), 0)::float8`;

const LIST = routine({
  name: "list_errors",
  takes: ["text", "text", "integer"],
  gives: `kind text, fingerprint text, queue text, name text, message text, "lastJobId" uuid, "firstSeenAt" timestamptz,
    "lastSeenAt" timestamptz, seen float8[], deaths float8`,
  body: `select x.kind, x.fingerprint, x.queue, x.name, x.message, x.last_job_id, x.first_seen_at, x.last_seen_at,
    c.seen, c.deaths
  from (
    select * from :schema.errors x where ($1 is null or x.kind = $1) and ($2 is null or x.queue = $2)
    order by x.last_seen_at desc limit $3
  ) x cross join lateral (
    select array[${within("1 hour")}, ${within("3 hours")}, ${within("24 hours")}, ${within("3 days")}, ${within("7 days")}] as seen,
      coalesce(sum(e.deaths), 0)::float8 as deaths
    from :schema.error_counts e where e.kind = x.kind and e.fingerprint = x.fingerprint
      and e.at > :schema.clock() - interval '7 days 10 minutes'
  ) c order by x.last_seen_at desc`,
});

export interface ErrorFilter {
  kind: string | null;
  queue: string | null;
  limit: number;
}

export async function listErrors(store: Store, { kind, queue, limit }: ErrorFilter): Promise<ErrorGroup[]> {
  return (await store.query<ErrorGroup>(LIST, [kind, queue, limit])).rows;
}

export interface DeadGroup {
  kind: string;
  fingerprint: string;
  count: number;
  /** There are more than were counted. */
  more: boolean;
  queue: string;
  name: string;
  message: string;
  reason: string | null;
  lastJobId: string;
  lastAt: Date;
}

const FINGERPRINT = fingerprintIn("j");
const COUNT_TO = 10_000;

// From one group to the next by the index, never row by row; each is counted up to a bound.
const DEAD = routine({
  name: "list_dead_groups",
  takes: ["integer"],
  gives: `kind text, fingerprint text, count integer, more boolean, queue text, name text, message text, reason text,
    "lastJobId" uuid, "lastAt" timestamptz`,
  body: `with recursive groups as (
    (select j.kind, ${FINGERPRINT} as fingerprint, 1 as n from :schema.jobs j where j.hold = 3
      order by j.kind, ${FINGERPRINT} limit 1)
    union all
    select next.kind, next.fingerprint, g.n + 1 from groups g cross join lateral (
      select j.kind, ${FINGERPRINT} as fingerprint from :schema.jobs j
      where j.hold = 3 and (j.kind, ${FINGERPRINT}) > (g.kind, g.fingerprint)
      order by j.kind, ${FINGERPRINT} limit 1
    ) next where g.n < $1
  )
  select g.kind, g.fingerprint, c.count, c.count >= ${COUNT_TO}, l.queue, left(l.last_error ->> 'name', 200),
    left(l.last_error ->> 'message', 500), l.last_error ->> 'reason', l.id, coalesce(l.started_at, l.created_at)
  from groups g cross join lateral (
    select count(*)::integer as count from (
      select 1 from :schema.jobs j where j.hold = 3 and j.kind = g.kind and ${FINGERPRINT} = g.fingerprint limit ${COUNT_TO}
    ) counted
  ) c cross join lateral (
    select j.id, j.queue, j.last_error, j.started_at, j.created_at from :schema.jobs j
    where j.hold = 3 and j.kind = g.kind and ${FINGERPRINT} = g.fingerprint order by j.id desc limit 1
  ) l order by c.count desc, l.id desc`,
});

export async function listDeadGroups(store: Store, limit: number): Promise<DeadGroup[]> {
  return (await store.query<DeadGroup>(DEAD, [limit])).rows;
}
