// Items of a batch, a page at a time, in the order in which they were added.
import type { BatchItem, BatchState } from "../../job/batch.ts";
import { sql, type Statement, type Store } from "../sql.ts";
import { ITEM_COLUMNS, type ItemRow, toItem, WITH_OUTCOME } from "./rows.ts";

const PAGE = sql`
select ${ITEM_COLUMNS} from (
  select i.* from :schema.batch_items i where i.batch_id = $1::uuid and i.seq > $3 order by i.seq limit $4
) i ${WITH_OUTCOME} order by i.seq`;

const BY_LABEL = sql`
select ${ITEM_COLUMNS} from (
  select o.batch_id, o.seq from :schema.batch_outcomes o
  where o.batch_id = $1::uuid and o.outcome = $5 and o.seq > $3 order by o.seq limit $4
) p join :schema.batch_items i on i.batch_id = p.batch_id and i.seq = p.seq ${WITH_OUTCOME} order by i.seq`;

const HANDED_OVER = sql`
select ${ITEM_COLUMNS} from (
  select o.batch_id, o.seq from :schema.batch_outcomes o
  where o.batch_id = $1::uuid and o.outcome is null and o.seq > $3 order by o.seq limit $4
) p join :schema.batch_items i on i.batch_id = p.batch_id and i.seq = p.seq ${WITH_OUTCOME} order by i.seq`;

const RUNNING = sql`
select ${ITEM_COLUMNS} from (
  select r.batch_id, r.batch_seq as seq from :schema.jobs r
  where r.batch_id = $1::uuid and r.state = 'running' and r.batch_seq > $3 order by r.batch_seq limit $4
) p join :schema.batch_items i on i.batch_id = p.batch_id and i.seq = p.seq ${WITH_OUTCOME} order by i.seq`;

// Pending, or cancelled without ever having had a slot: an item without an outcome and without a run. A part of the items is
// looked at, and the answer says how far it got, so that no page costs more than that.
const WAITING = sql`
with looked as materialized (
  select i.* from :schema.batch_items i where i.batch_id = $1::uuid and i.seq > $3 order by i.seq limit $5
)
select ${ITEM_COLUMNS} from looked i ${WITH_OUTCOME}
where (o.seq is null or o.outcome = $6) and (j.id is null or j.state <> 'running')
order by i.seq limit $4`;

const LOOKED = sql`
select max(seq) as seq, count(*)::integer as count from (
  select i.seq from :schema.batch_items i where i.batch_id = $1::uuid and i.seq > $2 order by i.seq limit $3) l`;

const MOST_LOOKED = 10_000;

export interface ItemFilter {
  batchId: string;
  batchState: BatchState;
  /** pending, running, handed-over or an outcome. */
  state?: string | undefined;
  after: number;
  limit: number;
}

export interface ItemPage {
  items: BatchItem[];
  /** Where the next page begins; null: there is none. */
  next: number | null;
}

export async function listItems(store: Store, filter: ItemFilter): Promise<ItemPage> {
  const { batchId, batchState, state, after, limit } = filter;
  const values = [batchId, batchState, after, limit];
  if (state === "pending" || state === "cancelled") return await listWaiting(store, filter);
  const [statement, extra]: [Statement, unknown[]] =
    state === undefined
      ? [PAGE, []]
      : state === "running"
        ? [RUNNING, []]
        : state === "handed-over"
          ? [HANDED_OVER, []]
          : [BY_LABEL, [state]];
  const { rows } = await store.query<ItemRow>(statement, [...values, ...extra]);
  return { items: rows.map(toItem), next: rows.length < limit ? null : Number(rows.at(-1)!.seq) };
}

async function listWaiting(store: Store, { batchId, batchState, state, after, limit }: ItemFilter): Promise<ItemPage> {
  const isCancelled = batchState === "cancelled";
  // In a cancelled batch nothing waits, and what has no outcome is cancelled; elsewhere only what was cancelled by itself.
  if (state === "pending" && isCancelled) return { items: [], next: null };
  if (state === "cancelled" && !isCancelled) {
    const { rows } = await store.query<ItemRow>(BY_LABEL, [batchId, batchState, after, limit, state]);
    return { items: rows.map(toItem), next: rows.length < limit ? null : Number(rows.at(-1)!.seq) };
  }
  const look = Math.max(MOST_LOOKED, limit);
  const { rows } = await store.query<ItemRow>(WAITING, [
    batchId,
    batchState,
    after,
    limit,
    look,
    isCancelled ? "cancelled" : null,
  ]);
  if (rows.length === limit) return { items: rows.map(toItem), next: Number(rows.at(-1)!.seq) };
  const looked = await store.query<{ seq: string | null; count: number }>(LOOKED, [batchId, after, look]);
  const { seq, count } = looked.rows[0]!;
  return { items: rows.map(toItem), next: count < look || seq === null ? null : Number(seq) };
}

const SOME = sql`
select ${ITEM_COLUMNS} from :schema.batch_items i ${WITH_OUTCOME}
where i.batch_id = $1::uuid and i.seq = any($3::bigint[]) order by i.seq`;

export async function readItems(
  store: Store,
  batchId: string,
  batchState: BatchState,
  seqs: readonly string[],
): Promise<BatchItem[]> {
  return (await store.query<ItemRow>(SOME, [batchId, batchState, seqs])).rows.map(toItem);
}

export async function readItem(
  store: Store,
  batchId: string,
  batchState: BatchState,
  seq: number,
): Promise<BatchItem | undefined> {
  return (await readItems(store, batchId, batchState, [String(seq)]))[0];
}
