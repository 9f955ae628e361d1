// All inboxes together, for metrics: counted from the index of what is open, up to a bound.
import { sql, type Store } from "../sql.ts";
import { ageMillis } from "./rows.ts";

/** The figures of one inbox, or of all. */
export interface InboxFigures {
  waiting: number;
  /** Fetched and not acked. */
  fetched: number;
  bytes: number;
  /** How long the oldest that nobody fetched has waited, in milliseconds; null if none waits. */
  oldestWaitingMs: number | null;
  /** There are more than were counted. */
  more: boolean;
}

const MOST = 100_000;

const FIGURES = sql`
select count(*) filter (where o.fetched_at is null)::integer as waiting,
  count(*) filter (where o.fetched_at is not null)::integer as fetched, coalesce(sum(o.size), 0)::float8 as bytes,
  ${ageMillis("min(o.created_at) filter (where o.fetched_at is null)")} as oldest, count(*) = ${MOST} as more
from (
  select p.fetched_at, p.size, p.created_at from :schema.parcels p
  where p.acked_at is null and p.expired_at is null and p.expires_at > :schema.clock() limit ${MOST}
) o`;

export async function readFigures(store: Store): Promise<InboxFigures> {
  const { rows } = await store.query<Omit<InboxFigures, "oldestWaitingMs"> & { oldest: number | null }>(FIGURES);
  const { oldest, ...counted } = rows[0]!;
  return { ...counted, oldestWaitingMs: oldest };
}
