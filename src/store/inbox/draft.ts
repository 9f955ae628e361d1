// Writes content before anybody can see it. A draft is begun if the recipient's quota has room, takes chunks while it
// exists, and becomes a parcel by `deliver`. Each statement may be sent again when its answer was lost.
//
// On our own connection these commits do not wait for the disk: the one that delivers does, and it comes after them in
// the log, so they are durable when it is. Inside a caller's transaction that is left as the caller has it.
import { routine, sql, type Store } from "../sql.ts";

export interface NewDraft {
  id: string;
  recipient: string;
  key: string | null;
  /** As announced; null: nobody knows yet. */
  size: number | null;
  quotaBytes: number;
  quotaParcels: number;
}

export interface Begun {
  made: boolean;
  /** The parcel that has the key already. */
  known: string | null;
  /** What the recipient has open, drafts included. */
  parcels: number;
  bytes: number;
}

const NO_WAIT = `perform set_config('synchronous_commit', 'off', true);`;

/** What counts against a recipient's quota: what waits, and what is on its way. */
const BEGIN = routine({
  name: "begin_draft",
  takes: ["text"],
  gives: "made boolean, known uuid, parcels bigint, bytes bigint",
  first: `if ($1::jsonb ->> 'own')::boolean then ${NO_WAIT} end if;`,
  body: `with r as materialized (
  select r.* from jsonb_to_record($1::jsonb) as r (
    id uuid, recipient text, key text, size bigint, quota_bytes bigint, quota_parcels bigint)
),
known as materialized (
  select p.id from r join :schema.parcels p on p.recipient = r.recipient and p.key = r.key
),
used as materialized (
  select count(*) as parcels, coalesce(sum(u.size), 0)::bigint as bytes from (
    select p.size from r join :schema.parcels p on p.recipient = r.recipient
      and p.acked_at is null and p.expired_at is null
    union all
    select d.size from r join :schema.parcel_drafts d on d.recipient = r.recipient and d.id <> r.id
      and d.touched_at > '-infinity'
  ) u
),
made as (
  insert into :schema.parcel_drafts (id, recipient, touched_at, size)
  select r.id, r.recipient, :schema.clock(), coalesce(r.size, 0) from r, used
  where not exists (select 1 from known)
    and used.parcels < r.quota_parcels and used.bytes + coalesce(r.size, 1) <= r.quota_bytes
  -- The answer to an earlier try was lost.
  on conflict (id) do update set touched_at = excluded.touched_at
  returning id
)
select exists (select 1 from made), (select id from known), used.parcels, used.bytes from used`,
});

export async function beginDraft(store: Store, draft: NewDraft, own: boolean): Promise<Begun> {
  const { rows } = await store.query<{ made: boolean; known: string | null; parcels: string; bytes: string }>(BEGIN, [
    JSON.stringify({
      own,
      id: draft.id,
      recipient: draft.recipient,
      key: draft.key,
      size: draft.size,
      quota_bytes: draft.quotaBytes,
      quota_parcels: draft.quotaParcels,
    }),
  ]);
  const { made, known, parcels, bytes } = rows[0]!;
  return { made, known, parcels: Number(parcels), bytes: Number(bytes) };
}

const writing = (id: string, n: string, bytes: string, written: string): string => `with d as (
  update :schema.parcel_drafts set touched_at = :schema.clock(), size = greatest(size, ${written})
  where id = ${id} returning id
),
w as (
  insert into :schema.parcel_chunks (parcel_id, n, bytes) select d.id, ${n}, ${bytes} from d
  on conflict do nothing
)
select id from d`;

const WRITE = routine({
  name: "write_chunk",
  takes: ["uuid", "integer", "bytea", "bigint"],
  gives: "id uuid",
  first: NO_WAIT,
  body: writing("$1", "$2", "$3", "$4"),
});

// Callers' libraries hand on one text parameter, so the bytes travel as base64.
const WRITE_AS_TEXT = sql`
with r as materialized (
  select r.id, r.n, decode(r.bytes, 'base64') as bytes, r.written
  from jsonb_to_record($1::text::jsonb) as r (id uuid, n integer, bytes text, written bigint)
),
d as (
  update :schema.parcel_drafts d set touched_at = :schema.clock(), size = greatest(d.size, r.written)
  from r where d.id = r.id returning d.id
),
w as (
  insert into :schema.parcel_chunks (parcel_id, n, bytes) select d.id, r.n, r.bytes from d join r on r.id = d.id
  on conflict do nothing
)
select id from d`;

export interface Chunk {
  draftId: string;
  n: number;
  bytes: Buffer;
  /** Bytes of the draft, this chunk included. */
  written: number;
}

/** False: the draft is not there any more. */
export async function writeChunk(store: Store, { draftId, n, bytes, written }: Chunk, own: boolean): Promise<boolean> {
  const { rows } = own
    ? await store.query(WRITE, [draftId, n, bytes, written])
    : await store.query(WRITE_AS_TEXT, [JSON.stringify({ id: draftId, n, bytes: bytes.toString("base64"), written })]);
  return rows.length === 1;
}

const ABANDON = sql`update :schema.parcel_drafts set touched_at = '-infinity' where id = $1::uuid`;

/** Nobody will finish it: the janitor need not wait. */
export async function abandonDraft(store: Store, id: string): Promise<void> {
  await store.query(ABANDON, [id]);
}
