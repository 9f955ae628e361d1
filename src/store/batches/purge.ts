// Removes what belongs to batches whose time is over, a part at a time; then the batch itself, when its key may be used again.
//
// Each part locks the batch and looks again whether it is due: a retry of what failed may have come first, and then needs all of it.
import { sql, type Store } from "../sql.ts";

const DUE = sql`
select b.id, (select max(i.seq) from :schema.batch_items i where i.batch_id = b.id) as most from :schema.batches b
where b.purge_at <= :schema.clock() and b.purged_at is null order by b.purge_at limit 1`;

export interface PurgeableBatch {
  id: string;
  /** The last item that is left. */
  most: number;
}

export async function nextPurgeable(store: Store): Promise<PurgeableBatch | undefined> {
  const { rows } = await store.query<{ id: string; most: string | null }>(DUE);
  return rows[0] && { id: rows[0].id, most: Number(rows[0].most ?? 0) };
}

/** Locked until the commit. Without a row of it, nothing is to be removed. */
const STILL_DUE = `still as materialized (
  select b.id from :schema.batches b
  where b.id = $1::uuid and b.purge_at <= :schema.clock() and b.purged_at is null for no key update
)`;

// From the last item down, by number: what is gone already is not walked again.
const PURGE_PART = sql`
with ${STILL_DUE},
outcomes as (
  delete from :schema.batch_outcomes o
  where o.batch_id = $1::uuid and o.seq > $2 and o.seq <= $3 and exists (select 1 from still)
)
delete from :schema.batch_items i
where i.batch_id = $1::uuid and i.seq > $2 and i.seq <= $3 and exists (select 1 from still)`;

export async function purgeItems(store: Store, id: string, most: number, limit: number): Promise<number> {
  return (await store.query(PURGE_PART, [id, Math.max(0, most - limit), most])).rowCount;
}

const PURGE_RETURNS = sql`
with ${STILL_DUE}
delete from :schema.batch_returns r where r.ctid = any(array(
  select x.ctid from :schema.batch_returns x
  where x.batch_id = $1::uuid and exists (select 1 from still) order by x.n desc limit $2))`;

export async function purgeReturns(store: Store, id: string, limit: number): Promise<number> {
  return (await store.query(PURGE_RETURNS, [id, limit])).rowCount;
}

const PURGE_REST = sql`
with ${STILL_DUE},
writers as (delete from :schema.batch_writers w where w.batch_id = $1::uuid and exists (select 1 from still)),
errors as (delete from :schema.batch_errors e where e.batch_id = $1::uuid and exists (select 1 from still))
update :schema.batches b set purged_at = :schema.clock() from still where b.id = still.id`;

/** What is left is a tombstone: its key is known, and the feed can say that it is gone. False: it is not due any more. */
export async function purgeRest(store: Store, id: string): Promise<boolean> {
  return (await store.query(PURGE_REST, [id])).rowCount > 0;
}

// The log of a batch that goes on for long: what the feed has told, and is old, except for the newest entry.
const TRIM_LOG = sql`
delete from :schema.batch_log l where l.ctid = any(array(
  select x.ctid from :schema.batch_log x
  where x.batch_id = $1::uuid and x.n < (select max(m.n) from :schema.batch_log m where m.batch_id = $1::uuid)
    and x.at < :schema.clock() - $2 * interval '1 millisecond'
  order by x.n limit $3))`;

export async function trimLog(store: Store, id: string, keepMs: number, limit: number): Promise<number> {
  return (await store.query(TRIM_LOG, [id, keepMs, limit])).rowCount;
}

const FORGET = sql`
with due as materialized (
  select b.id from :schema.batches b
  where b.purged_at < :schema.clock() - $2 * interval '1 millisecond'
    and (b.key is null or b.created_at < :schema.clock() - b.keep_key_ms * interval '1 millisecond')
  order by b.purged_at limit $1 for update of b skip locked
),
log as (delete from :schema.batch_log l using due d where l.batch_id = d.id)
delete from :schema.batches b using due d where b.id = d.id`;

/** Tombstones that nobody can ask for any more. */
export async function forgetBatches(store: Store, keepMs: number, limit: number): Promise<number> {
  return (await store.query(FORGET, [limit, keepMs])).rowCount;
}

const TRIM_FEED = sql`
delete from :schema.batch_feed f where f.seq = any(array(
  select x.seq from :schema.batch_feed x where x.at < :schema.clock() - $1 * interval '1 millisecond'
    and x.seq < (select max(m.seq) from :schema.batch_feed m)
  order by x.at limit $2))`;

/** The newest entry stays, so that its number is known. */
export async function trimFeed(store: Store, keepMs: number, limit: number): Promise<number> {
  return (await store.query(TRIM_FEED, [keepMs, limit])).rowCount;
}
