// Looks over batches that are not finished, for what nobody is at work on: one that was left open, a retry of errors or a
// cancel whose process died, and slots that are not used. The last must never happen; it is put right, and told.
import { routine, sql, type Store } from "../sql.ts";
import { ADVANCED, advance, type Advanced, LOCK_BATCH, NEWEST, PARKED } from "./advance.ts";
import { WITH_LOG } from "./rows.ts";

export type Need = "abandoned" | "retry" | "cancel" | "heal";

export interface NeedyBatch {
  id: string;
  kind: string;
  need: Need | null;
}

// One statement, one snapshot: the log and the jobs are of the same moment.
const LOOK = sql`
select b.id, b.kind, case
  when b.closed_at is null and b.state <> 'cancelled'
    and b.touched_at < :schema.clock() - b.open_ms * interval '1 millisecond' then 'abandoned'
  when b.retry_n is not null then 'retry'
  when b.state = 'cancelled' and (j.pending > 0 or j.untold > 0) then 'cancel'
  when j.slots <> l.admitted or j.parked <> l.parked
    or (b.state in ('queued', 'running') and l.admitted < b.concurrency
      and l.added - l.taken + l.returned - l.retaken + l.parked > 0)
    or (b.closed_at is not null and l.ended_total = l.added and b.retry_n is null) then 'heal'
end as need
from (select * from :schema.batches b where b.finished_at is null and b.id > $1::uuid order by b.id limit $2) b
cross join lateral ${NEWEST("b.id")} l
cross join lateral (
  select count(*) filter (where j.hold <> ${PARKED}) as slots, count(*) filter (where j.hold = ${PARKED}) as parked,
    count(*) filter (where j.state = 'pending') as pending,
    count(*) filter (where j.state = 'running' and j.cancel_requested_at is null) as untold
  from :schema.jobs j where j.batch_id = b.id
) j order by b.id`;

/** A page of unfinished batches, with what each needs. */
export async function lookOver(store: Store, after: string, limit: number): Promise<NeedyBatch[]> {
  return (await store.query<NeedyBatch>(LOOK, [after, limit])).rows;
}

// Items that had a slot and are nowhere: they wait again. Then the slots are counted anew, and given out.
const HEAL = routine({
  name: "heal_batch",
  takes: ["uuid"],
  gives: `lost bigint[], ${ADVANCED}`,
  settings: ["lock_timeout = '2s'", "enable_seqscan = on", "enable_hashjoin = on", "enable_bitmapscan = on"],
  declares: ["v_b record", "v_lost bigint[]", "v_slots bigint", "v_parked bigint", "v_ends boolean"],
  first: `
${LOCK_BATCH("$1")}
select b.*, l.added, l.taken, l.returned, l.retaken, l.admitted, l.parked, l.ended_total into v_b
from ${WITH_LOG} where b.id = $1 and b.finished_at is null;
if not found then return; end if;
select count(*) filter (where j.hold <> ${PARKED}), count(*) filter (where j.hold = ${PARKED}) into v_slots, v_parked
from :schema.jobs j where j.batch_id = $1;
select coalesce(array_agg(i.seq order by i.seq), '{}') into v_lost from :schema.batch_items i
where v_b.state <> 'cancelled' and i.batch_id = $1 and i.seq <= v_b.taken
  and v_slots + v_parked < v_b.admitted + v_b.parked
  and not exists (select 1 from :schema.batch_outcomes o where o.batch_id = $1 and o.seq = i.seq)
  and not exists (select 1 from :schema.jobs j where j.batch_id = $1 and j.batch_seq = i.seq)
  and not exists (select 1 from :schema.batch_returns r where r.batch_id = $1 and r.seq = i.seq and r.n > v_b.retaken);
v_ends := v_b.closed_at is not null and v_b.ended_total = v_b.added and v_b.retry_n is null;
if v_slots = v_b.admitted and v_parked = v_b.parked and not v_ends
  and not (v_b.state in ('queued', 'running') and v_b.admitted < v_b.concurrency
    and v_b.added - v_b.taken + v_b.returned - v_b.retaken + v_b.parked > 0) then return; end if;
insert into :schema.batch_returns (batch_id, n, seq, bounces)
select $1, v_b.returned + u.place, u.seq, 0 from unnest(v_lost) with ordinality as u (seq, place);`,
  body: `select v_lost, a.* from ${advance({
    what: "healed",
    seqs: "v_lost",
    admitted: "v_slots - v_b.admitted",
    parked: "v_parked - v_b.parked",
    returned: "cardinality(v_lost)",
    // Of a cancelled batch, what is nowhere is cancelled.
    ended: `case when v_b.state = 'cancelled' and v_slots + v_parked < v_b.admitted + v_b.parked
      then jsonb_build_object('cancelled', v_b.admitted + v_b.parked - v_slots - v_parked) else '{}' end`,
  })} a`,
});

export interface Healed {
  /** Items that were nowhere, and wait again. */
  lost: number[];
  advanced: Advanced;
}

/** Undefined: it is in order. */
export async function healBatch(store: Store, id: string): Promise<Healed | undefined> {
  const { rows } = await store.query<Advanced & { lost: string[] }>(HEAL, [id]);
  if (!rows[0]) return undefined;
  const { lost, ...advanced } = rows[0];
  return { lost: lost.map(Number), advanced };
}
