// Turns drafts into parcels: all of a put in one commit, or none. Sent again after a lost answer, it finds them there.
//
// A draft is delivered only if its chunks add up to what was hashed. A key that the recipient's inbox has already stands
// for the parcel that came first.
import { routine, type Store } from "../sql.ts";

export interface NewParcel {
  id: string;
  name: string;
  type: string;
  size: number;
  sha256: string;
  chunks: number;
  chunkBytes: number;
  ttlMs: number;
  key: string | null;
  /** JSON texts. */
  meta: string | null;
  onExpired: string | null;
}

export interface Delivery {
  recipient: string;
  parcels: readonly NewParcel[];
  quotaBytes: number;
  quotaParcels: number;
}

export interface Delivered {
  id: string;
  created: boolean;
  /** Same key, other content: the first one stays. */
  conflict: boolean;
}

export type DeliverResult =
  | { delivered: Delivered[] }
  /** The recipient has no room. */
  | { full: { parcels: number; bytes: number } }
  /** Drafts that are not there any more, or not whole. */
  | { lost: string[] };

// Deliveries to one recipient take turns, so that two cannot fill the same room. Not inside a caller's transaction: it
// may stay open for long, and others must not wait for it.
const DELIVER = routine({
  name: "deliver_parcels",
  takes: ["text"],
  gives: `n integer, id uuid, created boolean, conflict boolean, lost boolean, crowded boolean, parcels bigint,
    bytes bigint`,
  first: `if ($1::jsonb ->> 'own')::boolean then
    perform pg_advisory_xact_lock(hashtextextended('holdfast inbox ' || ($1::jsonb ->> 'inbox'), 0));
  end if;
-- In a statement of its own: what a purge took of these drafts while we waited for it is then seen to be gone.
perform 1 from :schema.parcel_drafts d
where d.id = any(array(select (r ->> 'id')::uuid from jsonb_array_elements($1::jsonb -> 'rows') as r))
order by d.id for update;`,
  body: `with h as materialized (
  select h.* from jsonb_to_record($1::jsonb) as h (recipient text, quota_bytes bigint, quota_parcels bigint)
),
r as materialized (
  select r.* from jsonb_to_recordset($1::jsonb -> 'rows') as r (
    n integer, id uuid, name text, type text, size bigint, sha256 text, chunks integer, chunk_bytes integer,
    ttl_ms bigint, key text, meta jsonb, on_expired jsonb)
),
there as materialized (
  -- By an earlier try whose answer was lost, or by whoever had the key first.
  select r.n, p.id, p.id = r.id as created, p.sha256 <> decode(r.sha256, 'hex') as differs
  from h cross join r join lateral (
    select p.id, p.sha256 from :schema.parcels p where p.id = r.id
    union all
    select p.id, p.sha256 from :schema.parcels p where p.recipient = h.recipient and p.key = r.key and p.id <> r.id
  ) p on true
),
-- Twice the same key in one put: the first of them.
fresh as materialized (
  select distinct on (coalesce(r.key, r.id::text)) r.* from r
  where r.n not in (select n from there) order by coalesce(r.key, r.id::text), r.n
),
whole as materialized (
  select f.* from h cross join fresh f join :schema.parcel_drafts d on d.id = f.id and d.recipient = h.recipient
  where (select count(*) = f.chunks and sum(octet_length(c.bytes)) = f.size
    from :schema.parcel_chunks c where c.parcel_id = f.id)
  order by d.id for update of d
),
used as materialized (
  select (select count(*) from fresh) + count(p.size) as parcels,
    (select coalesce(sum(size), 0) from fresh) + coalesce(sum(p.size), 0) as bytes
  from h left join :schema.parcels p on p.recipient = h.recipient and p.acked_at is null and p.expired_at is null
),
verdict as materialized (
  select (select count(*) from whole) < (select count(*) from fresh) as is_lost,
    (select count(*) from fresh) > 0 and (u.parcels > h.quota_parcels or u.bytes > h.quota_bytes) as is_full,
    u.parcels, u.bytes
  from used u, h
),
made as (
  insert into :schema.parcels (id, recipient, created_at, expires_at, gone_at, size, chunk_bytes, sha256, name, type, key,
    meta, on_expired)
  select w.id, h.recipient, :schema.clock(), e.expires_at, e.expires_at, w.size, w.chunk_bytes, decode(w.sha256, 'hex'),
    w.name, w.type, w.key, w.meta, w.on_expired
  from verdict v, h, whole w
    cross join lateral (select :schema.clock() + w.ttl_ms * interval '1 millisecond' as expires_at) e
  where not v.is_lost and not v.is_full
  on conflict do nothing
  returning id
),
taken as (delete from :schema.parcel_drafts d using made where d.id = made.id),
-- Content that is not needed: for the janitor.
left_over as (
  update :schema.parcel_drafts d set touched_at = '-infinity' from r
  where d.id = r.id and d.id not in (select id from fresh)
)
select r.n, coalesce(m.id, t.id), coalesce(t.created, m.id is not null), coalesce(t.differs, false),
  v.is_lost and r.id in (select id from fresh) and r.id not in (select id from whole), v.is_full, v.parcels,
  v.bytes::bigint
from verdict v, r left join made m on m.id = r.id left join there t on t.n = r.n`,
});

interface Row {
  n: number;
  id: string | null;
  created: boolean;
  conflict: boolean;
  lost: boolean;
  crowded: boolean;
  parcels: string;
  bytes: string;
}

export async function deliver(store: Store, delivery: Delivery, own: boolean): Promise<DeliverResult> {
  const { recipient, quotaBytes, quotaParcels, parcels } = delivery;
  const text = JSON.stringify({
    own,
    inbox: `${store.schema} ${recipient}`,
    recipient,
    quota_bytes: quotaBytes,
    quota_parcels: quotaParcels,
    rows: parcels.map((parcel, n) => ({
      n,
      id: parcel.id,
      name: parcel.name,
      type: parcel.type,
      size: parcel.size,
      sha256: parcel.sha256,
      chunks: parcel.chunks,
      chunk_bytes: parcel.chunkBytes,
      ttl_ms: parcel.ttlMs,
      key: parcel.key,
      meta: parcel.meta === null ? null : (JSON.parse(parcel.meta) as unknown),
      on_expired: parcel.onExpired === null ? null : (JSON.parse(parcel.onExpired) as unknown),
    })),
  });
  // Somebody else delivered under one of the keys at the same moment, or the key stands twice in this put: the next
  // statement sees whose it is.
  for (let tries = 0; ; tries += 1) {
    const { rows } = await store.query<Row>(DELIVER, [text]);
    const isLast = tries === 3;
    const lost = rows.filter((row) => row.lost || (isLast && row.id === null));
    if (rows[0]!.crowded) return { full: { parcels: Number(rows[0]!.parcels), bytes: Number(rows[0]!.bytes) } };
    if (lost.length > 0) return { lost: lost.map((row) => parcels[row.n]!.name) };
    if (rows.every((row) => row.id !== null)) return { delivered: inOrder(rows) };
  }
}

function inOrder(rows: Row[]): Delivered[] {
  return rows
    .toSorted((left, right) => left.n - right.n)
    .map(({ id, created, conflict }) => ({ id: id!, created, conflict }));
}
