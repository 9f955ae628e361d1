// Batches as people see them.
import type { Batch } from "../../job/batch.ts";
import { sql, type Store } from "../sql.ts";
import { BATCH_COLUMNS, type BatchRow, toBatch, WITH_LOG } from "./rows.ts";

/** What is past its retention is gone, though its rows may still be on their way out. */
const VISIBLE = `b.deleted_at is null and (b.purge_at is null or b.purge_at > :schema.clock())`;

const READ = sql`
select ${BATCH_COLUMNS} from ${WITH_LOG} where b.id = $1::uuid and ${VISIBLE}`;

export async function readBatch(store: Store, id: string): Promise<Batch | undefined> {
  const { rows } = await store.query<BatchRow>(READ, [id]);
  return rows[0] && toBatch(rows[0]);
}

// Two plans: the owner's index, or the primary key.
const LIST = sql`
select ${BATCH_COLUMNS} from ${WITH_LOG}
where ${VISIBLE} and b.id < $1::uuid
  and ($2::text is null or b.kind = $2) and ($3::text[] is null or b.state = any($3))
  and (not $4::boolean or coalesce((l.ended ->> 'error')::bigint, 0) > 0)
order by b.id desc limit $5`;

const LIST_OF_OWNER = sql`
select ${BATCH_COLUMNS} from ${WITH_LOG}
where b.owner = $6 and ${VISIBLE} and b.id < $1::uuid
  and ($2::text is null or b.kind = $2) and ($3::text[] is null or b.state = any($3))
  and (not $4::boolean or coalesce((l.ended ->> 'error')::bigint, 0) > 0)
order by b.id desc limit $5`;

export interface BatchFilter {
  kind?: string | undefined;
  states?: readonly string[] | undefined;
  owner?: string | undefined;
  withErrors?: boolean | undefined;
  /** Older than this one. */
  before?: string | undefined;
  limit: number;
}

const LAST = "ffffffff-ffff-ffff-ffff-ffffffffffff";

/** Newest first. */
export async function listBatches(store: Store, filter: BatchFilter): Promise<Batch[]> {
  const values = [
    filter.before ?? LAST,
    filter.kind ?? null,
    filter.states ?? null,
    filter.withErrors ?? false,
    filter.limit,
  ];
  const { rows } =
    filter.owner === undefined
      ? await store.query<BatchRow>(LIST, values)
      : await store.query<BatchRow>(LIST_OF_OWNER, [...values, filter.owner]);
  return rows.map(toBatch);
}
