// Ends a batch now: what waits is cancelled in this commit, what runs is told, and whatever it still says is not
// published. What was handed over to the owner may still be acked, or expires.
//
// Asked for again, it ends what a worker that died left behind, and tells what runs once more.
import type { Store } from "../sql.ts";
import { PARKED } from "./advance.ts";
import { control, type Controlled, runControl, UNCHANGED } from "./control.ts";

const CANCEL = control({
  name: "cancel_batch",
  what: "cancelled",
  when: `v_b.finished_at is null`,
  declares: ["v_slots bigint", "v_parked bigint"],
  work: `
update :schema.batches b set state = 'cancelled', paused_at = null, retry_n = null,
  closed_at = coalesce(b.closed_at, :schema.clock())
where b.id = $1 and b.state <> 'cancelled';
with gone as (delete from :schema.jobs j where j.batch_id = $1 and j.state = 'pending' returning j.hold)
select count(*) filter (where hold <> ${PARKED}), count(*) filter (where hold = ${PARKED}) into v_slots, v_parked from gone;
-- A row that its handler has locked is told by its lease alone; if its worker dies, a chore comes back for it.
update :schema.jobs j set cancel_requested_at = :schema.clock() where j.id = any(array(
  select t.id from :schema.jobs t where t.batch_id = $1 and t.state = 'running' and t.cancel_requested_at is null
  order by t.id for update of t skip locked));
select array_agg(j.id) into v_running from :schema.jobs j where j.batch_id = $1 and j.state = 'running';
update :schema.leases l set cancel_ids = l.cancel_ids || array(
  select u.id from unnest(l.job_ids) as u (id) where u.id = any(v_running) and u.id <> all(l.cancel_ids))
where l.ctid = any(array(
  select t.ctid from :schema.leases t
  where t.token in (select j.token from :schema.jobs j where j.id = any(v_running))
  order by t.token for update of t skip locked)) and l.job_ids && v_running and not l.cancel_ids @> v_running;
if v_b.state = 'cancelled' and v_slots + v_parked = 0 then ${UNCHANGED("v_running")} end if;`,
  change: {
    admitted: "-v_slots",
    parked: "-v_parked",
    ended: `case when v_slots + v_parked = 0 then '{}' else jsonb_build_object('cancelled', v_slots + v_parked) end`,
  },
});

export async function cancelBatch(store: Store, id: string, by: string | null): Promise<Controlled | undefined> {
  return await runControl(store, CANCEL, id, by);
}

const ABANDONED = `Items were expected, and none came for longer than the batch may stay open.`;

const ABANDON = control({
  name: "abandon_batch",
  what: "abandoned",
  when: `v_b.closed_at is null and v_b.touched_at < :schema.clock() - v_b.open_ms * interval '1 millisecond'`,
  work: `update :schema.batches b set reason = '${ABANDONED}' where b.id = $1;`,
});

/** Says why a batch that nobody closed is about to be cancelled; false if it was touched meanwhile. */
export async function abandonBatch(store: Store, id: string): Promise<boolean> {
  return (await runControl(store, ABANDON, id, null))?.changed ?? false;
}
