// What was handed over and nobody acked in time: the item waits again, a bounded number of times, and is an error after that.
// One whose parcel was acked through the inbox, by somebody who did not name an outcome, has come to what its kind says.
import type { ErrorRecord } from "../../job/outcome.ts";
import { routine, sql, type Store } from "../sql.ts";
import { ADVANCED, advance, type Advanced, LOCK_BATCH, NEWEST } from "./advance.ts";
import { COUNT_ERROR } from "./end-handed.ts";

const DUE = sql`
select d.batch_id as "batchId", array_agg(d.seq order by d.seq) as seqs from (
  (select o.batch_id, o.seq from :schema.batch_outcomes o
  where o.outcome is null and o.handed_until < :schema.clock() order by o.handed_until limit $1)
  union
  (select o.batch_id, o.seq from :schema.batch_outcomes o join :schema.parcels p on p.id = o.parcel_id
  where o.outcome is null and p.acked_at is not null order by o.handed_until limit $1)
) d group by d.batch_id`;

const EXPIRE_HANDED = routine({
  name: "expire_handed",
  takes: ["uuid", "bigint[]", "jsonb", "text"],
  gives: `queue text, acked_as text, bounced bigint[], expired bigint[], acked bigint[], cancelled bigint[], ${ADVANCED}`,
  settings: ["lock_timeout = '1s'"],
  declares: [
    "v_b record",
    "v_bounced bigint[]",
    "v_expired bigint[]",
    "v_acked bigint[]",
    "v_cancelled bigint[]",
    "v_all bigint[]",
    "v_count jsonb",
  ],
  first: `
${LOCK_BATCH("$1")}
select b.*, l.n as newest, l.returned into v_b from :schema.batches b cross join lateral ${NEWEST("b.id")} l where b.id = $1;
if not found then return; end if;
select coalesce(array_agg(d.seq order by d.seq) filter (where d.fate = 'bounced'), '{}'),
  coalesce(array_agg(d.seq order by d.seq) filter (where d.fate = 'expired'), '{}'),
  coalesce(array_agg(d.seq order by d.seq) filter (where d.fate = 'acked'), '{}'),
  coalesce(array_agg(d.seq order by d.seq) filter (where d.fate = 'cancelled'), '{}'), coalesce(array_agg(d.seq order by d.seq), '{}')
into v_bounced, v_expired, v_acked, v_cancelled, v_all from (
  select o.seq, case when p.acked_at is not null and v_b.acked_as is not null then 'acked'
    when v_b.state = 'cancelled' then 'cancelled'
    when o.bounces < v_b.hand_tries then 'bounced' else 'expired' end as fate
  from :schema.batch_outcomes o left join :schema.parcels p on p.id = o.parcel_id
  where o.batch_id = $1 and o.seq = any($2) and o.outcome is null
    and (o.handed_until < :schema.clock() or p.acked_at is not null)
) d;
if cardinality(v_all) = 0 then return; end if;
insert into :schema.batch_returns (batch_id, n, seq, bounces)
select $1, v_b.returned + row_number() over (order by o.seq), o.seq, o.bounces + 1
from :schema.batch_outcomes o where o.batch_id = $1 and o.seq = any(v_bounced);
delete from :schema.batch_outcomes o where o.batch_id = $1 and o.seq = any(v_bounced);
update :schema.batch_outcomes o set at = :schema.clock(), n = v_b.newest + 1,
  outcome = case when o.seq = any(v_acked) then v_b.acked_as when o.seq = any(v_expired) then 'error' else 'cancelled' end,
  error = case when o.seq = any(v_expired) then $3 end, fingerprint = case when o.seq = any(v_expired) then $4 end
where o.batch_id = $1 and o.seq = any(v_all) and o.seq <> all(v_bounced);
${COUNT_ERROR("v_expired", "$4", "$3")}
select coalesce(jsonb_object_agg(label, count), '{}') into v_count from (
  select label, sum(count) as count from (values (v_b.acked_as, cardinality(v_acked)), ('error', cardinality(v_expired)),
    ('cancelled', cardinality(v_cancelled))) as c (label, count) where count > 0 group by label
) summed;`,
  body: `select v_b.queue::text, v_b.acked_as::text, v_bounced, v_expired, v_acked, v_cancelled, a.* from ${advance({
    what: "expired",
    seqs: "v_all",
    handed: "-cardinality(v_all)",
    returned: "cardinality(v_bounced)",
    ended: "v_count",
  })} a`,
});

export const EXPIRED_ERROR: ErrorRecord = {
  name: "Expired",
  reason: "expired",
  message: "What was handed back was not acked in time, as often as it was tried.",
};

export interface ExpiredHanded {
  batchId: string;
  queue: string;
  /** What those came to that were acked without a word. */
  ackedAs: string | null;
  /** They wait again. */
  bounced: number[];
  expired: number[];
  /** Through the inbox. */
  acked: number[];
  cancelled: number[];
  advanced: Advanced;
}

/** Up to `limit` items, batch by batch. */
export async function expireHanded(store: Store, limit: number, fingerprint: string): Promise<ExpiredHanded[]> {
  const { rows } = await store.query<{ batchId: string; seqs: string[] }>(DUE, [limit]);
  const ended: ExpiredHanded[] = [];
  for (const { batchId, seqs } of rows) {
    type Row = Advanced &
      Record<"bounced" | "expired" | "acked" | "cancelled", string[]> & { queue: string; acked_as: string | null };
    const found = await store.query<Row>(EXPIRE_HANDED, [batchId, seqs, JSON.stringify(EXPIRED_ERROR), fingerprint]);
    if (!found.rows[0]) continue;
    const { queue, acked_as: ackedAs, bounced, expired, acked, cancelled, ...advanced } = found.rows[0];
    ended.push({
      batchId,
      queue,
      ackedAs,
      bounced: bounced.map(Number),
      expired: expired.map(Number),
      acked: acked.map(Number),
      cancelled: cancelled.map(Number),
      advanced,
    });
  }
  return ended;
}
