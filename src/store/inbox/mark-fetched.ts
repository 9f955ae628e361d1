// Notes that somebody got all of a parcel. Each time counts; the latest wins. Only while its content may be read.
import { sql, type Store } from "../sql.ts";

const MARK = sql`
with marked as (
  update :schema.parcels p set fetched_at = :schema.clock(), fetch_count = p.fetch_count + 1
  where p.id = $1::uuid and p.recipient = $2 and p.removed_at is null
    -- Whoever is still reading when its time ends has been given the time to finish.
    and (p.gone_at > :schema.clock() or p.held_until > :schema.clock())
  returning p.recipient, p.size
),
noted as (
  insert into :schema.inboxes as i (recipient, touched_at, fetched_at)
  select recipient, :schema.clock(), :schema.clock() from marked
  on conflict (recipient) do update set touched_at = excluded.touched_at, fetched_at = excluded.fetched_at
)
select size from marked`;

/** Its size; undefined: there is no such parcel for this recipient, or not any more. */
export async function markFetched(store: Store, recipient: string, id: string): Promise<number | undefined> {
  const { rows } = await store.query<{ size: string }>(MARK, [id, recipient]);
  return rows[0] && Number(rows[0].size);
}
