// Items that ended as errors wait again, with a full budget, and the batch is open again. In steps: the first says up to
// where, and until the last the batch cannot end; a chore goes on if the process that asked is gone. Of a batch whose retention is
// over nothing is retried: a part of its items may be gone already.
import type { BatchState } from "../../job/batch.ts";
import { routine, type Store } from "../sql.ts";
import { ADVANCED, advance, type Advanced, LOCK_BATCH, NEWEST, NOW } from "./advance.ts";

const STEP = 5_000;

const RETRY_FAILED = routine({
  name: "retry_failed",
  takes: ["uuid", "text", "boolean", "bigint[]"],
  gives: `was text, ${ADVANCED}, retried bigint, more boolean, over boolean`,
  settings: ["lock_timeout = '2s'"],
  declares: ["v_b record", "v_l record", "v_seqs bigint[]", "v_count bigint", "v_more boolean", "v_over boolean"],
  first: `
${LOCK_BATCH("$1")}
select b.* into v_b from :schema.batches b where b.id = $1 and b.deleted_at is null;
if not found then return; end if;
select l.* into v_l from ${NEWEST("$1")} l;
v_over := v_b.purged_at is not null or coalesce(v_b.purge_at <= ${NOW}, false);
if v_b.state = 'cancelled' or v_over or (not $3 and v_b.retry_n is null)
  or ($3 and coalesce((v_l.ended ->> 'error')::bigint, 0) = 0)
  or ($4 is not null and not exists (select 1 from :schema.batch_outcomes e
    where e.batch_id = $1 and e.outcome = 'error' and e.seq = any($4))) then
  return query select v_b.state::text, null::bigint, 0, false, v_b.state::text, v_b.kind::text,
    v_b.rank::smallint, v_b.owner::text, null::text, 0::bigint, false, v_over;
  return;
end if;
-- Asked for anew, or for some by name: from the beginning, up to now.
if $3 or $4 is not null then v_b.retry_n := v_l.n; v_b.retry_seq := 0; end if;
with gone as (
  delete from :schema.batch_outcomes o where o.batch_id = $1 and o.outcome = 'error' and o.seq = any(array(
    select e.seq from :schema.batch_outcomes e
    where e.batch_id = $1 and e.outcome = 'error' and e.seq > v_b.retry_seq and e.n <= v_b.retry_n
      and ($4 is null or e.seq = any($4))
    order by e.seq limit ${STEP}))
  returning o.seq, o.fingerprint
),
returned as (
  insert into :schema.batch_returns (batch_id, n, seq, bounces)
  select $1, v_l.returned + row_number() over (order by g.seq), g.seq, 0 from gone g
),
fewer as (
  update :schema.batch_errors e set count = e.count - g.count
  from (
    select coalesce(k.fingerprint, 'other') as fingerprint, count(*) as count
    from gone g left join :schema.batch_errors k on k.batch_id = $1 and k.fingerprint = g.fingerprint group by 1
  ) g where e.batch_id = $1 and e.fingerprint = g.fingerprint
)
select array_agg(seq order by seq), count(*), coalesce(max(seq), v_b.retry_seq) from gone into v_seqs, v_count, v_b.retry_seq;
v_more := v_count = ${STEP} and $4 is null;
delete from :schema.batch_errors e where e.batch_id = $1 and e.count <= 0;
-- What was asked for by name fits into one step, and leaves a longer retry that is under way where it is.
update :schema.batches b set retry_n = case when $4 is not null then b.retry_n when v_more then v_b.retry_n end,
  retry_seq = case when $4 is not null then b.retry_seq else v_b.retry_seq end,
  state = case when b.state = 'done' then 'running' else b.state end,
  finished_at = null, purge_at = null
where b.id = $1;`,
  body: `select v_b.state::text, a.*, v_count, v_more, false from ${advance({
    what: "retried",
    by: "$2",
    seqs: "v_seqs",
    returned: "v_count",
    ended: `case when v_count = 0 then '{}' else jsonb_build_object('error', -v_count) end`,
  })} a`,
});

export interface RetriedStep {
  was: BatchState;
  retried: number;
  /** There are more: ask again, to go on. */
  more: boolean;
  /** Its retention is over: nothing is retried any more. */
  isOver: boolean;
  advanced: Advanced | undefined;
}

/** One step; `anew`: somebody asked, rather than going on with what was asked. Undefined: there is no such batch. */
export async function retryFailedStep(
  store: Store,
  id: string,
  by: string | null,
  anew: boolean,
  seqs?: readonly number[],
): Promise<RetriedStep | undefined> {
  type Row = Advanced & { was: BatchState; retried: string; more: boolean; over: boolean };
  const { rows } = await store.query<Row>(RETRY_FAILED, [id, by, anew, seqs ?? null]);
  if (!rows[0]) return undefined;
  const { was, retried, more, over, ...advanced } = rows[0];
  return { was, retried: Number(retried), more, isOver: over, advanced: advanced.n === null ? undefined : advanced };
}
