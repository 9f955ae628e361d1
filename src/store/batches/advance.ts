// What follows from any change of a batch: free slots are given to the next items, the batch ends if nothing is left, and
// an entry of the log says how it stands now. Part of every routine that changes a batch, in its commit.
//
// The caller holds the lock of the batch's row from an earlier statement, so there is one of these at a time for a batch,
// and it sees what all before it did. Slots go to parked items that are due, then to what was returned, then to what never
// had one, and last to parked items that are not due yet: those wait for their time in the slot.
import type { BatchState } from "../../job/batch.ts";
import { followerAttempts } from "../jobs/follower.ts";
import { routine, sqlUuidv7 } from "../sql.ts";

/** Holds for the rest of the transaction; what is read in later statements is as the last change left it. */
export const LOCK_BATCH = (id: string): string =>
  `perform 1 from :schema.batches b where b.id = ${id} for no key update;`;

export const NEWEST = (id: string): string =>
  `(select l.* from :schema.batch_log l where l.batch_id = ${id} order by l.n desc limit 1)`;

export const PARKED = 7;
/** When so many wait for a retry, nothing new is begun before some of them are over. It keeps every statement bounded. */
export const MOST_PARKED = 10_000;

/** The clock now, not when the statement began: it may have waited for the lock. */
export const NOW = "clock_timestamp() + (:schema.clock() - statement_timestamp())";

/** The job of an item. `v_b` is the batch. */
const ADMIT = (items: string, bounces: string): string => `
insert into :schema.jobs (id, kind, queue, rank, run_at, created_at, max_attempts, payload, batch_id, batch_seq)
select ${sqlUuidv7}, v_b.kind, v_b.queue, v_b.rank, v_now, v_now, v_b.attempts,
  jsonb_build_object('batch', v_b.id, 'seq', i.seq, 'bounces', ${bounces}, 'item', i.payload), v_b.id, i.seq
from ${items};
get diagnostics v_got = row_count;
v_free := v_free - v_got;
v_l.admitted := v_l.admitted + v_got;
v_given := v_given + v_got;`;

const UNPARK = (which: string, runAt: string): string => `
update :schema.jobs j set hold = 0, run_at = ${runAt} where j.id = any(array(
  select p.id from :schema.jobs p where p.batch_id = v_b.id and p.hold = ${PARKED} and p.run_at ${which} v_now
  order by p.run_at limit v_free));
get diagnostics v_got = row_count;
v_free := v_free - v_got;
v_l.parked := v_l.parked - v_got;
v_l.admitted := v_l.admitted + v_got;
v_given := v_given + v_got;`;

/** Entries of the log in which somebody worked on the batch. */
const WORK = `('settled', 'started')`;

/** The columns of `Advanced` in a routine's answer. */
export const ADVANCED = `n bigint, given integer, finished boolean, state text, kind text, rank smallint, owner text, follow text`;

export const ADVANCE = routine({
  name: "advance_batch",
  // batch, what, by, items it changed, and the changes of: admitted, parked, handed, added, returned, ended by label.
  takes: ["uuid", "text", "text", "bigint[]", "bigint", "bigint", "bigint", "bigint", "bigint", "jsonb"],
  gives: ADVANCED,
  declares: [
    "v_b record",
    "v_l record",
    `v_now timestamptz := ${NOW}`,
    "v_free bigint",
    "v_got bigint",
    "v_given bigint := 0",
    "v_waiting bigint",
    "v_ended jsonb := $10",
    "v_finished boolean := false",
  ],
  first: `
select b.* into v_b from :schema.batches b where b.id = $1;
select l.* into v_l from ${NEWEST("$1")} l;
v_l.admitted := v_l.admitted + $5;
v_l.parked := v_l.parked + $6;
v_l.handed := v_l.handed + $7;
v_l.added := v_l.added + $8;
v_l.returned := v_l.returned + $9;
v_waiting := v_l.added - v_l.taken + v_l.returned - v_l.retaken;
-- What never had a slot needs no row of its own: an item without an outcome in a cancelled batch is cancelled. So a million
-- of them cost what one does.
if v_b.state = 'cancelled' and v_waiting > 0 then
  v_ended := v_ended || jsonb_build_object('cancelled', coalesce((v_ended ->> 'cancelled')::bigint, 0) + v_waiting);
  v_l.taken := v_l.added;
  v_l.retaken := v_l.returned;
end if;
if v_ended <> '{}' then
  select coalesce(jsonb_object_agg(label, count), '{}'), coalesce(sum(count), 0) into v_l.ended, v_l.ended_total from (
    select label, sum(count::bigint) as count
    from (select * from jsonb_each_text(v_l.ended) union all select * from jsonb_each_text(v_ended)) as c (label, count)
    group by label having sum(count::bigint) <> 0
  ) summed;
end if;
if v_b.started_at is null and $2 in ${WORK} then
  v_b.started_at := v_now;
  if v_b.state = 'queued' then v_b.state := 'running'; end if;
  update :schema.batches b set state = v_b.state, started_at = v_now where b.id = $1;
end if;
v_free := case when v_b.state in ('queued', 'running') then v_b.concurrency - v_l.admitted else 0 end;
if v_free > 0 and v_l.parked > 0 then ${UNPARK("<=", "v_now")} end if;
if v_free > 0 and v_l.returned > v_l.retaken and v_l.parked < ${MOST_PARKED} then
  ${ADMIT(
    `:schema.batch_returns r join :schema.batch_items i on i.batch_id = r.batch_id and i.seq = r.seq
    where r.batch_id = v_b.id and r.n > v_l.retaken and r.n <= v_l.retaken + v_free order by r.n`,
    "r.bounces",
  )}
  v_l.retaken := v_l.retaken + v_got;
end if;
if v_free > 0 and v_l.added > v_l.taken and v_l.parked < ${MOST_PARKED} then
  ${ADMIT(
    `:schema.batch_items i where i.batch_id = v_b.id and i.seq > v_l.taken and i.seq <= v_l.taken + v_free
    order by i.seq`,
    "0",
  )}
  v_l.taken := v_l.taken + v_got;
end if;
if v_free > 0 and v_l.parked > 0 then ${UNPARK(">", "j.run_at")} end if;
if v_b.finished_at is null and v_l.ended_total = v_l.added and v_b.closed_at is not null and v_b.retry_n is null then
  v_finished := true;
  if v_b.state <> 'cancelled' then v_b.state := 'done'; end if;
  update :schema.batches b set state = v_b.state, finished_at = v_now, started_at = coalesce(b.started_at, v_now),
    paused_at = null, purge_at = v_now + b.keep_ms * interval '1 millisecond',
    completions = b.completions + case v_b.state when 'done' then 1 else 0 end
  where b.id = $1;
  if v_b.state = 'done' and v_b.on_done is not null then
    insert into :schema.jobs (id, kind, queue, rank, run_at, created_at, max_attempts, payload)
    select ${sqlUuidv7}, v_b.on_done ->> 'kind', coalesce(v_b.on_done ->> 'queue', 'default'), 0, v_now, v_now,
      ${followerAttempts("v_b.on_done")},
      jsonb_build_object('batch', jsonb_build_object('id', v_b.id, 'kind', v_b.kind, 'owner', v_b.owner, 'key', v_b.key,
        'state', v_b.state, 'total', v_l.added, 'counts', v_l.ended, 'completion', v_b.completions + 1),
        'payload', v_b.on_done -> 'payload');
  end if;
end if;
if v_now - v_l.pace_at > interval '30 seconds' then
  v_l.pace_before_at := v_l.pace_at;
  v_l.pace_before_ended := v_l.pace_ended;
  v_l.pace_at := v_now;
  v_l.pace_ended := v_l.ended_total;
end if;
insert into :schema.batch_log (batch_id, n, at, what, by, state, seqs, added, taken, returned, retaken, handed,
  ended_total, ended, admitted, parked, pace_at, pace_ended, pace_before_at, pace_before_ended)
values ($1, v_l.n + 1, v_now, $2, $3, v_b.state, $4, v_l.added, v_l.taken, v_l.returned, v_l.retaken, v_l.handed,
  v_l.ended_total, v_l.ended, v_l.admitted, v_l.parked, v_l.pace_at, v_l.pace_ended, v_l.pace_before_at,
  v_l.pace_before_ended);
insert into :schema.batch_news (batch_id, n, owner) values ($1, v_l.n + 1, v_b.owner);`,
  body: `select v_l.n + 1, v_given::integer, v_finished, v_b.state::text, v_b.kind::text, v_b.rank::smallint, v_b.owner::text,
  case when v_finished and v_b.state = 'done' then v_b.on_done ->> 'kind' end`,
});

/** What a change of a batch set off. */
export interface Advanced {
  n: string;
  /** Items that were given a slot. */
  given: number;
  /** It ended with this change. */
  finished: boolean;
  state: BatchState;
  kind: string;
  rank: number;
  owner: string | null;
  /** The kind of the follow-up job. */
  follow: string | null;
}

/** For a routine that holds the batch's lock; each argument is an expression. */
export const advance = (change: {
  batch?: string;
  what: string;
  by?: string;
  seqs?: string;
  admitted?: string;
  parked?: string;
  handed?: string;
  added?: string;
  returned?: string;
  ended?: string;
}): string => {
  const { batch = "$1", what, by = "null", seqs = "null", ended = "'{}'" } = change;
  const { admitted = "0", parked = "0", handed = "0", added = "0", returned = "0" } = change;
  return `:schema.${ADVANCE.name}(${batch}, '${what}', ${by}, ${seqs}::bigint[], ${admitted}, ${parked}, ${handed}, ${added},
  ${returned}, ${ended}::jsonb)`;
};
