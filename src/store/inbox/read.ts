// One parcel of one recipient, and its content chunk by chunk. The recipient is part of every question: somebody else's
// parcel is as unknown as none.
import { routine, sql, type Store } from "../sql.ts";
import { type Parcel, PARCEL_COLUMNS, type ParcelRow, toParcel } from "./rows.ts";

const READ = sql`
select ${PARCEL_COLUMNS} from :schema.parcels p where p.id = $1::uuid and p.recipient = $2`;

/** Tombstones too. */
export async function readParcel(store: Store, recipient: string, id: string): Promise<Parcel | undefined> {
  const { rows } = await store.query<ParcelRow>(READ, [id, recipient]);
  return rows[0] && toParcel(rows[0]);
}

// One text column: callers' libraries can be told to rename columns and to read types in their own way.
const READ_MANY = sql`
select to_jsonb(r)::text as parcel from (
  select ${PARCEL_COLUMNS}
  from jsonb_array_elements_text($1::text::jsonb) as i (id) join :schema.parcels p on p.id = i.id::uuid
) r`;

/** By id, for whoever has just put them; also inside a caller's transaction. */
export async function readParcels(store: Store, ids: readonly string[]): Promise<Map<string, Parcel>> {
  const { rows } = await store.query<{ parcel: string }>(READ_MANY, [JSON.stringify(ids)]);
  return new Map(
    rows.map(({ parcel }) => {
      const read = Object.entries(JSON.parse(parcel) as object).map(([name, value]: [string, unknown]) => [
        name,
        name.endsWith("_at") && typeof value === "string" ? new Date(value) : value,
      ]);
      const row = Object.fromEntries(read) as ParcelRow;
      return [row.id, toParcel(row)];
    }),
  );
}

const OPEN = sql`
select ${PARCEL_COLUMNS}, p.chunk_bytes, p.gone_at < :schema.clock() + interval '1 minute' as ends_soon from :schema.parcels p
where p.id = $1::uuid and p.recipient = $2 and p.gone_at > :schema.clock() and p.removed_at is null`;

export interface OpenParcel {
  parcel: Parcel;
  chunkBytes: number;
  /** Within a minute. */
  endsSoon: boolean;
}

/** Only if its content may be read now. */
export async function openParcel(store: Store, recipient: string, id: string): Promise<OpenParcel | undefined> {
  const { rows } = await store.query<ParcelRow & { chunk_bytes: number; ends_soon: boolean }>(OPEN, [id, recipient]);
  const [row] = rows;
  return row && { parcel: toParcel(row), chunkBytes: row.chunk_bytes, endsSoon: row.ends_soon };
}

const READ_CHUNK = routine({
  name: "read_chunk",
  takes: ["uuid", "integer"],
  gives: "bytes bytea",
  body: `select c.bytes from :schema.parcel_chunks c where c.parcel_id = $1 and c.n = $2`,
});

/** undefined: the content was removed meanwhile. */
export async function readChunk(store: Store, id: string, n: number): Promise<Buffer | undefined> {
  const { rows } = await store.query<{ bytes: Buffer }>(READ_CHUNK, [id, n]);
  return rows[0]?.bytes;
}
