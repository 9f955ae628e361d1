// Ends parcels whose time is over and that nobody acked. The row says why, the recipient's counts are kept apart by
// reason, and the job that the sender asked for is inserted, all in one commit: expiry is an event, not a deletion.
// What is being read right now is left for the next round.
import { routine, sqlUuidv7, type Store } from "../sql.ts";
import type { ExpiryReason } from "./rows.ts";

export interface ExpiredParcel {
  id: string;
  recipient: string;
  name: string;
  size: number;
  reason: ExpiryReason;
  /** The kind of the job that follows. */
  kind: string | null;
}

const REASON = `case when d.fetched_at is null then 'never fetched' else 'fetched, never acked' end`;

const EXPIRE = routine({
  name: "expire_parcels",
  takes: ["integer"],
  gives: "id uuid, recipient text, name text, size bigint, reason text, kind text",
  body: `with due as materialized (
  select p.* from :schema.parcels p
  where p.acked_at is null and p.expired_at is null and p.gone_at <= :schema.clock()
    and (p.held_until is null or p.held_until <= :schema.clock())
  order by p.gone_at limit $1 for update of p skip locked
),
ended as (
  update :schema.parcels p set expired_at = :schema.clock() where p.id = any(array(select id from due))
),
noted as (
  insert into :schema.inboxes as i (recipient, touched_at, never_fetched_count, never_acked_count, expired_bytes)
  select d.recipient, :schema.clock(), count(*) filter (where d.fetched_at is null),
    count(*) filter (where d.fetched_at is not null), sum(d.size)
  from due d group by d.recipient order by d.recipient
  on conflict (recipient) do update set touched_at = excluded.touched_at,
    never_fetched_count = i.never_fetched_count + excluded.never_fetched_count,
    never_acked_count = i.never_acked_count + excluded.never_acked_count,
    expired_bytes = i.expired_bytes + excluded.expired_bytes
),
followed as (
  insert into :schema.jobs (id, kind, queue, rank, run_at, created_at, max_attempts, payload)
  select ${sqlUuidv7}, d.on_expired ->> 'kind', coalesce(d.on_expired ->> 'queue', 'default'), 0, :schema.clock(),
    :schema.clock(), 5,
    jsonb_build_object('parcel', jsonb_build_object('id', d.id, 'recipient', d.recipient, 'name', d.name,
      'type', d.type, 'size', d.size, 'sha256', encode(d.sha256, 'hex'), 'key', d.key, 'meta', d.meta,
      'reason', ${REASON}), 'payload', d.on_expired -> 'payload')
  from due d where d.on_expired is not null
)
select d.id, d.recipient, d.name, d.size, ${REASON}, d.on_expired ->> 'kind' from due d`,
});

export async function expireParcels(store: Store, limit: number): Promise<ExpiredParcel[]> {
  const { rows } = await store.query<Omit<ExpiredParcel, "size"> & { size: string }>(EXPIRE, [limit]);
  return rows.map((row) => ({ ...row, size: Number(row.size) }));
}
