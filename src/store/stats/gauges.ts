// What a scrape asks: tiny tables and roll-ups only.
import { asMillis, sql, type Store } from "../sql.ts";

const LEASES = sql`
select coalesce(min(${asMillis("l.expires_at - :schema.clock()")} / l.lease_ms), 1)::float8 as "minRemainingRatio",
  count(*)::integer as held
from (select expires_at, lease_ms from :schema.leases order by expires_at limit 1000) l`;

export interface LeaseGauges {
  /** Up to a thousand. */
  held: number;
  /** The least part of a lease that is left; 1 when there is none. */
  minRemainingRatio: number;
}

export async function leaseGauges(store: Store): Promise<LeaseGauges> {
  return (await store.query<LeaseGauges>(LEASES)).rows[0]!;
}

const WORKERS = sql`
select count(*)::integer as count from :schema.workers where beat_at > :schema.clock() - interval '1 minute'`;

export async function countWorkers(store: Store): Promise<number> {
  return (await store.query<{ count: number }>(WORKERS)).rows[0]!.count;
}

export interface ChoreState {
  chore: string;
  succeededAt: Date | null;
  finishedAt: Date | null;
  failures: number;
  error: string | null;
  /** The process that runs it now. */
  by: string | null;
  nextAt: Date;
}

const CHORES = sql`
select name as chore, succeeded_at as "succeededAt", finished_at as "finishedAt", failures, error, run_by as "by",
  next_at as "nextAt"
from :schema.chores order by name`;

export async function choreStates(store: Store): Promise<ChoreState[]> {
  return (await store.query<ChoreState>(CHORES)).rows;
}
