// How each inbox stands. What is open is counted from its index (a recipient's quota bounds it); what ended is counted
// when it ends. Recipients are found by jumping from one to the next, not by walking their parcels.
import { sql, type Store } from "../sql.ts";
import { ageMillis } from "./rows.ts";

export interface InboxRow {
  recipient: string;
  waiting: number;
  fetched: number;
  bytes: number;
  oldestAt: Date | null;
  /** How long the oldest that nobody fetched has waited, and the oldest that was fetched has not been acked. */
  waitingForMs: number | null;
  unackedForMs: number | null;
  polledAt: Date | null;
  polledAgoMs: number | null;
  fetchedAt: Date | null;
  ackedAt: Date | null;
  ackedAgoMs: number | null;
  acked: number;
  ackedBytes: number;
  neverFetched: number;
  neverAcked: number;
  expiredBytes: number;
}

/**
 * What is open is joined, not asked for name by name: with some hundred recipients the planner may take it from an index without
 * their names, which would then be read through once for each of them.
 */
const COUNTED = `,
counted as materialized (
  select n.recipient, count(*) filter (where live and fetched_at is null)::integer as waiting,
    count(*) filter (where live and fetched_at is not null)::integer as fetched,
    coalesce(sum(size) filter (where live), 0)::bigint as bytes, min(created_at) filter (where live) as oldest_at,
    min(created_at) filter (where live and fetched_at is null) as waiting_since,
    min(fetched_at) filter (where live) as unacked_since,
    -- Their time is over, and the janitor has not come by yet.
    count(*) filter (where not live and fetched_at is null) as never_fetched,
    count(*) filter (where not live and fetched_at is not null) as never_acked,
    coalesce(sum(size) filter (where not live), 0)::bigint as expired_bytes
  from names n left join (
    select p.recipient, p.size, p.created_at, p.fetched_at, p.expires_at > :schema.clock() as live from :schema.parcels p
    where p.acked_at is null and p.expired_at is null
  ) p on p.recipient = n.recipient
  group by n.recipient
)
select o.recipient, o.waiting, o.fetched, o.bytes, o.oldest_at, ${ageMillis("o.waiting_since")} as waiting_for_ms,
  ${ageMillis("o.unacked_since")} as unacked_for_ms, i.polled_at, ${ageMillis("i.polled_at")} as polled_ago_ms,
  i.fetched_at, i.acked_at, ${ageMillis("i.acked_at")} as acked_ago_ms, coalesce(i.acked_count, 0) as acked,
  coalesce(i.acked_bytes, 0) as acked_bytes, coalesce(i.never_fetched_count, 0) + o.never_fetched as never_fetched,
  coalesce(i.never_acked_count, 0) + o.never_acked as never_acked,
  coalesce(i.expired_bytes, 0) + o.expired_bytes as expired_bytes
from counted o left join :schema.inboxes i on i.recipient = o.recipient
order by o.recipient`;

const PAGE = sql`
with recursive jumps (recipient) as (
  (select p.recipient from :schema.parcels p where p.recipient > $1 order by p.recipient limit 1)
  union all
  select (select p.recipient from :schema.parcels p where p.recipient > j.recipient order by p.recipient limit 1)
  from jumps j where j.recipient is not null
),
names as materialized (
  select recipient from (
    (select recipient from jumps where recipient is not null limit $2)
    union
    (select i.recipient from :schema.inboxes i where i.recipient > $1 order by i.recipient limit $2)
  ) both_of_them order by recipient limit $2
)${COUNTED}`;

const ONE = sql`with names as (select $1::text collate "C" as recipient)${COUNTED}`;

interface Row {
  recipient: string;
  waiting: number;
  fetched: number;
  bytes: string;
  oldest_at: Date | null;
  waiting_for_ms: number | null;
  unacked_for_ms: number | null;
  polled_at: Date | null;
  polled_ago_ms: number | null;
  fetched_at: Date | null;
  acked_at: Date | null;
  acked_ago_ms: number | null;
  acked: string;
  acked_bytes: string;
  never_fetched: string;
  never_acked: string;
  expired_bytes: string;
}

/** In the order of their names, behind `after`. */
export async function listInboxes(store: Store, after: string, limit: number): Promise<InboxRow[]> {
  return (await store.query<Row>(PAGE, [after, limit])).rows.map(toInboxRow);
}

export async function readInbox(store: Store, recipient: string): Promise<InboxRow> {
  return toInboxRow((await store.query<Row>(ONE, [recipient])).rows[0]!);
}

function toInboxRow(row: Row): InboxRow {
  return {
    recipient: row.recipient,
    waiting: row.waiting,
    fetched: row.fetched,
    bytes: Number(row.bytes),
    oldestAt: row.oldest_at,
    waitingForMs: row.waiting_for_ms,
    unackedForMs: row.unacked_for_ms,
    polledAt: row.polled_at,
    polledAgoMs: row.polled_ago_ms,
    fetchedAt: row.fetched_at,
    ackedAt: row.acked_at,
    ackedAgoMs: row.acked_ago_ms,
    acked: Number(row.acked),
    ackedBytes: Number(row.acked_bytes),
    neverFetched: Number(row.never_fetched),
    neverAcked: Number(row.never_acked),
    expiredBytes: Number(row.expired_bytes),
  };
}
