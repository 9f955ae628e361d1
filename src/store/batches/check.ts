// Counts the items of a batch and compares them with its counters. There must be no difference; the caller says so if there
// is. A large batch is counted in parts, while nothing changes it: one that is at rest, that is.
import { sql, type Store } from "../sql.ts";
import { WITH_LOG } from "./rows.ts";

const TO_CHECK = sql`
select b.id, b.kind, l.n, l.added, b.state, l.ended, l.handed
from ${WITH_LOG}
where b.id > $1::uuid and b.purged_at is null and (b.purge_at is null or b.purge_at > :schema.clock())
  and l.n > b.checked_n and (b.finished_at is not null or b.state = 'paused' or l.added <= $3)
order by b.id limit $2`;

// One snapshot for the part and for the newest entry of the log.
const COUNT_PART = sql`
select (select max(l.n) from :schema.batch_log l where l.batch_id = $1::uuid) as n,
  (select count(*) from :schema.batch_items i where i.batch_id = $1::uuid and i.seq > $2 and i.seq <= $3)::integer as items,
  (select count(*) from :schema.jobs j where j.batch_id = $1::uuid and j.batch_seq > $2 and j.batch_seq <= $3)::integer as jobs,
  (select coalesce(jsonb_object_agg(c.label, c.count), '{}') from (
    select coalesce(o.outcome, 'handed-over') as label, count(*) as count from :schema.batch_outcomes o
    where o.batch_id = $1::uuid and o.seq > $2 and o.seq <= $3 group by o.outcome) c) as labels`;

const MARK_CHECKED = sql`update :schema.batches set checked_n = $2 where id = $1::uuid and checked_n < $2`;

export interface CheckedBatch {
  id: string;
  kind: string;
  /** What the log says, and what the items say, where that differs. */
  differences: { what: string; kept: number; counted: number }[];
}

/** As many items as are counted in one statement. */
const PART = 20_000;

export interface CheckPage {
  checked: CheckedBatch[];
  /** Where the next page begins; null: that was all. */
  next: string | null;
}

interface Row {
  id: string;
  kind: string;
  n: string;
  added: string;
  state: string;
  ended: Record<string, number>;
  handed: string;
}

export async function checkBatches(
  store: Store,
  after: string,
  limit: number,
  hasTime: () => boolean,
): Promise<CheckPage> {
  const { rows } = await store.query<Row>(TO_CHECK, [after, limit, PART]);
  const checked: CheckedBatch[] = [];
  let reached = after;
  for (const row of rows) {
    if (!hasTime()) return { checked, next: reached };
    const counted = await count(store, row);
    // Otherwise another time.
    if (counted) {
      checked.push({ id: row.id, kind: row.kind, differences: compare(row, counted) });
      await store.query(MARK_CHECKED, [row.id, row.n]);
    }
    reached = row.id;
  }
  return { checked, next: rows.length < limit ? null : reached };
}

interface Counted {
  items: number;
  /** By label, and those that are handed over. */
  labels: Map<string, number>;
}

/** Undefined: it changed meanwhile. */
async function count(store: Store, row: Row): Promise<Counted | undefined> {
  const labels = new Map<string, number>();
  let items = 0;
  let elsewhere = 0;
  for (let from = 0; from === 0 || from < Number(row.added); from += PART) {
    type Part = { n: string; items: number; jobs: number; labels: Record<string, number> };
    const { rows } = await store.query<Part>(COUNT_PART, [row.id, from, from + PART]);
    const part = rows[0]!;
    if (part.n !== row.n) return undefined;
    items += part.items;
    elsewhere += part.jobs;
    for (const [label, found] of Object.entries(part.labels)) {
      labels.set(label, (labels.get(label) ?? 0) + found);
      elsewhere += found;
    }
  }
  // What never had a slot when its batch was cancelled has no row of its own.
  if (row.state === "cancelled") labels.set("cancelled", (labels.get("cancelled") ?? 0) + items - elsewhere);
  return { items, labels };
}

function compare(row: Row, counted: Counted): CheckedBatch["differences"] {
  const differences: CheckedBatch["differences"] = [];
  const expect = (what: string, kept: number, found: number): void => {
    if (kept !== found) differences.push({ what, kept, counted: found });
  };
  expect("items", Number(row.added), counted.items);
  const kept: Record<string, number> = { ...row.ended, "handed-over": Number(row.handed) };
  for (const label of new Set([...Object.keys(kept), ...counted.labels.keys()])) {
    expect(label, kept[label] ?? 0, counted.labels.get(label) ?? 0);
  }
  return differences;
}
