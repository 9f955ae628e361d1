// The recipient's word that it has a parcel. Reads no content. The first ack counts and sets until when the content
// stays; a second changes nothing and succeeds. What expired before it was ever fetched cannot be acked; what was
// fetched and then expired or was removed meanwhile can, and the answer says so.
import { routine, type Store } from "../sql.ts";

/** The answer to an ack. */
export interface Acked {
  id: string;
  /** It had been acked before. */
  again: boolean;
  /** Its time was over: it counts as expired, or its content was removed already. */
  gone: boolean;
}

const ACK = routine({
  name: "ack_parcels",
  takes: ["text", "uuid[]", "bigint"],
  gives: "id uuid, again boolean, gone boolean, size bigint",
  body: `with found as materialized (
  select p.id, p.acked_at is not null as again, p.size, p.expired_at is not null as is_told,
    p.expired_at is not null or p.removed_at is not null as gone
  from :schema.parcels p
  where p.id = any($2) and p.recipient = $1
    and (p.acked_at is not null or p.fetched_at is not null or (p.expired_at is null and p.expires_at > :schema.clock()))
  order by p.id for update of p
),
acked as (
  update :schema.parcels p set acked_at = :schema.clock(), held_until = null,
    gone_at = least(p.gone_at, :schema.clock() + $3 * interval '1 millisecond')
  from found f where p.id = f.id and not f.again
  returning p.id
),
noted as (
  insert into :schema.inboxes as i (recipient, touched_at, acked_at, acked_count, acked_bytes)
  -- What its sender was told has expired stays counted as expired.
  select $1, :schema.clock(), :schema.clock(), count(*) filter (where not f.is_told),
    coalesce(sum(f.size) filter (where not f.is_told), 0)
  from found f join acked a on a.id = f.id having count(*) > 0
  on conflict (recipient) do update set touched_at = excluded.touched_at, acked_at = excluded.acked_at,
    acked_count = i.acked_count + excluded.acked_count, acked_bytes = i.acked_bytes + excluded.acked_bytes
)
select f.id, f.again, f.gone, f.size from found f`,
});

/** Those it found; what is missing is unknown to this recipient. */
export async function ackParcels(
  store: Store,
  recipient: string,
  ids: readonly string[],
  keepMs: number,
): Promise<(Acked & { size: number })[]> {
  const { rows } = await store.query<Acked & { size: string }>(ACK, [recipient, ids, Math.max(0, keepMs)]);
  return rows.map((row) => ({ ...row, size: Number(row.size) }));
}
