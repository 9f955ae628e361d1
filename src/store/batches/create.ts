// Makes a batch, without items. The id is the caller's: sent again after a lost answer, it finds what is there. A key that
// the kind and the owner have already stands for the batch that came first.
import { sql, type Store } from "../sql.ts";

export interface NewBatch {
  id: string;
  kind: string;
  queue: string;
  rank: number;
  attempts: number;
  concurrency: number;
  /** JSON texts. */
  outcomes: string;
  onDone: string | null;
  fields: string;
  owner: string | null;
  key: string | null;
  total: number | null;
  /** null: for ever. */
  keepMs: number | null;
  keepKeyMs: number | null;
  openMs: number;
  handMs: number;
  handTries: number;
  ackedAs: string;
}

const CREATE = sql`
with r as (
  select * from jsonb_to_record($1::text::jsonb) as r (id uuid, kind text, queue text, rank smallint, attempts integer,
    concurrency integer, outcomes jsonb, on_done jsonb, fields jsonb, owner text, key text, total bigint, keep_ms bigint,
    keep_key_ms bigint, open_ms bigint, hand_ms bigint, hand_tries integer, acked_as text)
),
made as (
  insert into :schema.batches (id, kind, queue, rank, attempts, concurrency, outcomes, on_done, fields, owner, key, total,
    keep_ms, keep_key_ms, open_ms, hand_ms, hand_tries, acked_as, created_at, touched_at)
  select id, kind, queue, rank, attempts, concurrency, outcomes, on_done, fields, owner, key, total,
    keep_ms, keep_key_ms, open_ms, hand_ms, hand_tries, acked_as, :schema.clock(), :schema.clock()
  from r on conflict do nothing
  returning id
),
logged as (
  insert into :schema.batch_log (batch_id, n, at, what, state, added, taken, returned, retaken, handed, ended_total, ended,
    admitted, parked, pace_at, pace_ended, pace_before_at, pace_before_ended)
  select id, 1, :schema.clock(), 'created', 'queued', 0, 0, 0, 0, 0, 0, '{}', 0, 0, :schema.clock(), 0, :schema.clock(), 0
  from made
),
told as (
  insert into :schema.batch_news (batch_id, n, owner) select m.id, 1, r.owner from made m, r
)
select id from made`;

const FIND = sql`
select b.id, b.closed_at is not null as closed, b.owner from :schema.batches b
where b.id = $1::uuid or (b.kind = $2 and b.key = $3 and coalesce(b.owner, '') = coalesce($4, ''))`;

export interface CreatedBatch {
  id: string;
  /** False: it was there. */
  created: boolean;
  /** Nothing can be added to it. */
  closed: boolean;
  owner: string | null;
}

export async function createBatch(store: Store, batch: NewBatch): Promise<CreatedBatch> {
  const { outcomes, onDone, fields, keepMs, keepKeyMs, openMs, handMs, handTries, ackedAs, ...same } = batch;
  const text = JSON.stringify({
    ...same,
    outcomes: JSON.parse(outcomes) as unknown,
    on_done: onDone === null ? null : (JSON.parse(onDone) as unknown),
    fields: JSON.parse(fields) as unknown,
    keep_ms: keepMs,
    keep_key_ms: keepKeyMs,
    open_ms: openMs,
    hand_ms: handMs,
    hand_tries: handTries,
    acked_as: ackedAs,
  });
  const { rows } = await store.query<{ id: string }>(CREATE, [text]);
  if (rows[0]) return { id: rows[0].id, created: true, closed: false, owner: batch.owner };
  const found = await store.query<Omit<CreatedBatch, "created">>(FIND, [batch.id, batch.kind, batch.key, batch.owner]);
  return { ...found.rows[0]!, created: false };
}
