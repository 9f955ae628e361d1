// Writes how runs of items ended: the only way out of `jobs` for the job of an item, whoever ends it (its worker, the
// heartbeat thread, a person, the janitor). The statements for ordinary jobs leave items alone.
//
// One statement for many runs of one batch, guarded like any settle by (id, token, running). What the item came to, the
// counters, the next items for the slots that became free, and the end of the batch are one commit.
import type { ErrorRecord } from "../../job/outcome.ts";
import type { LeaseId } from "../jobs/beat.ts";
import type { Verdict, WhyNot } from "../jobs/settle.ts";
import { routine, sql, type Store } from "../sql.ts";
import { ADVANCED, advance, type Advanced, LOCK_BATCH, PARKED } from "./advance.ts";

export interface ItemRun {
  /** The job's. */
  id: string;
  /** null: it does not run; it is cancelled, or buried after its crashes. */
  token: string | null;
  outcome: "done" | "handed" | "retry" | "dead" | "snooze" | "release" | "cancelled";
  delayMs: number;
  /** Somebody else than its run says so: what that still says is refused, also before the next claim. */
  isTaken?: boolean | undefined;
  error?: ErrorRecord | undefined;
  /** JSON text. */
  result?: string | undefined;
  /** What the item came to, of those that its kind has. */
  label?: string | undefined;
  fingerprint?: string | undefined;
  /** Handed over: the parcel in the owner's inbox. */
  parcelId?: string | undefined;
}

export type ItemVerdict = Verdict | "handed";

export interface SettledItem {
  id: string;
  seq: number;
  verdict: ItemVerdict;
  /** What it is counted as, if it ended. */
  label: string | null;
  runAt: Date;
}

export interface SettledItems {
  items: SettledItem[];
  /** Undefined: nothing was changed. */
  advanced: Advanced | undefined;
}

const MOST_GROUPS = 200;

const SETTLE_ITEMS = routine({
  name: "settle_items",
  takes: ["uuid", "text", "text"],
  gives: `runs jsonb, ${ADVANCED}`,
  settings: ["lock_timeout = '1s'"],
  declares: [
    "v_b record",
    "v_runs jsonb",
    "v_seqs bigint[]",
    "v_freed bigint",
    "v_parked bigint",
    "v_unparked bigint",
    "v_handed bigint",
    "v_ended jsonb",
  ],
  first: `
${LOCK_BATCH("$1")}
select b.state, b.hand_ms, (select l.n + 1 from :schema.batch_log l where l.batch_id = b.id order by l.n desc limit 1) as n
into v_b from :schema.batches b where b.id = $1;
with s as materialized (
  select * from jsonb_to_recordset($2::jsonb) as s (id uuid, token bigint, outcome text, delay_ms bigint, error jsonb,
    result jsonb, label text, fingerprint text, parcel_id uuid, taken boolean)
  order by s.id
),
mine as materialized (
  select j.id, j.batch_seq as seq, j.token, j.attempt, j.max_attempts, j.claim_count, j.started_at, j.hold, j.run_at, j.queue,
    j.cancel_requested_at, coalesce((j.payload ->> 'bounces')::integer, 0) as bounces, s.outcome, s.delay_ms,
    coalesce(s.error, case when s.token is null then j.last_error end) as error, s.result, s.label, s.fingerprint,
    s.parcel_id, s.taken
  from s cross join lateral (
    -- By the primary key, one by one: written like this, no other index suits, whatever the table looked like when it was
    -- planned. What the batch ever had in its slots is not walked.
    select j.* from :schema.jobs j
    where j.id = s.id and coalesce(j.batch_id = $1, false)
      and case when s.token is not null then j.token = s.token and j.state = 'running'
        else j.state = 'pending' and (s.outcome = 'cancelled' or j.hold = 4) end
    for update of j skip locked
  ) j
),
-- Everything that is said about a run is said here, so that nothing below has to be joined with it.
judged as materialized (
  select m.*, case
    -- What comes after a cancel is not published.
    when v_b.state = 'cancelled' then 'cancelled'
    when outcome in ('done', 'handed', 'cancelled') then outcome
    when cancel_requested_at is not null then 'cancelled'
    when outcome = 'dead' or (outcome = 'retry' and attempt >= max_attempts) then 'dead'
    else outcome end as verdict
  from mine m
),
decided as materialized (
  select j.*, verdict in ('done', 'handed', 'cancelled', 'dead') as ends,
    case verdict when 'done' then label when 'dead' then 'error' when 'cancelled' then 'cancelled' end as comes_to,
    -- A suspect keeps its slot and runs alone, also while the batch is paused: it had begun.
    case when verdict = 'release' and (hold = 2 or v_b.state in ('queued', 'running')) then
        -- Of a paused queue it is set aside, so that no claim walks past it again: store/queues/pause.ts.
        case when exists (select 1 from :schema.queues q where q.name = j.queue and q.paused_at is not null)
          then case hold when 2 then 6 else 5 end else case hold when 2 then 2 else 0 end end
      else ${PARKED} end as back_hold,
    case when verdict = 'release' then run_at
      else :schema.clock() + coalesce(delay_ms, 0) * interval '1 millisecond' end as back_at
  from judged j
),
gone as (
  delete from :schema.jobs j using decided d
  where j.id = d.id and d.ends
),
written as (
  insert into :schema.batch_outcomes (batch_id, seq, n, at, started_at, handed_until, job_id, token, parcel_id, attempt,
    bounces, outcome, fingerprint, error, result)
  select $1, d.seq, v_b.n, :schema.clock(), d.started_at,
    case when d.verdict = 'handed' then :schema.clock() + v_b.hand_ms * interval '1 millisecond' end,
    d.id, d.token, case when d.verdict = 'handed' then d.parcel_id end, d.attempt, d.bounces,
    d.comes_to,
    case when d.verdict = 'dead' then d.fingerprint end,
    case when d.verdict <> 'cancelled' then d.error end, case when d.verdict <> 'cancelled' then d.result end
  from decided d where d.ends order by d.seq
  on conflict do nothing
  returning seq, outcome
),
back as (
  update :schema.jobs j set state = 'pending', hold = d.back_hold, token = case when d.taken then null else j.token end,
    attempt = case d.verdict when 'retry' then j.attempt else greatest(j.attempt - 1, 0) end,
    cancel_requested_at = null, run_at = d.back_at,
    crash_count = case d.verdict when 'release' then j.crash_count else 0 end,
    last_error = coalesce(d.error, j.last_error)
  from decided d where j.id = d.id and not d.ends
),
tries as (
  insert into :schema.attempts (job_id, claim_count, attempt, started_at, failed_at, outcome, error)
  select id, claim_count, attempt, started_at, :schema.clock(), verdict, error from decided
  where outcome in ('retry', 'dead') and error is not null on conflict do nothing
),
grouped as (
  insert into :schema.batch_errors as e (batch_id, fingerprint, count, first_at, last_at, last_seq, sample)
  select $1, fingerprint, count(*), :schema.clock(), :schema.clock(), max(seq), (array_agg(error order by seq))[1]
  from (
    select d.seq, d.error, case when (select count(*) from :schema.batch_errors k where k.batch_id = $1) < ${MOST_GROUPS}
      or exists (select 1 from :schema.batch_errors k where k.batch_id = $1 and k.fingerprint = d.fingerprint)
      then d.fingerprint else 'other' end as fingerprint
    from decided d where d.verdict = 'dead' and d.fingerprint is not null and d.error is not null
  ) f group by fingerprint order by fingerprint
  on conflict (batch_id, fingerprint) do update set count = e.count + excluded.count, last_at = excluded.last_at,
    last_seq = excluded.last_seq, sample = excluded.sample
),
released as (
  delete from :schema.leases l using jsonb_to_recordset($3::jsonb) as x (token bigint, lease_ms integer)
  where l.token = x.token and l.lease_ms = x.lease_ms and (select count(*) from mine) = (select count(*) from s)
),
labels as (
  select outcome, count(*) as count from written where outcome is not null group by outcome
)
select (select array_agg(seq order by seq) from written),
  (select count(*) from decided where hold <> ${PARKED} and ends),
  (select count(*) from decided where back_hold = ${PARKED} and not ends),
  (select count(*) from decided where hold = ${PARKED}),
  (select count(*) from written where outcome is null),
  (select coalesce(jsonb_object_agg(outcome, count), '{}') from labels),
  (select jsonb_agg(jsonb_build_object('id', d.id, 'seq', d.seq, 'verdict', d.verdict, 'label', d.comes_to,
    'runAt', case when d.ends then :schema.clock() else d.back_at end)) from decided d)
into v_seqs, v_freed, v_parked, v_unparked, v_handed, v_ended, v_runs;
if v_runs is null then return; end if;`,
  body: `select v_runs, a.* from ${advance({
    what: "settled",
    seqs: "v_seqs",
    admitted: "-v_freed - v_parked",
    parked: "v_parked - v_unparked",
    handed: "v_handed",
    ended: "v_ended",
  })} a`,
});

function asJson(run: ItemRun): string {
  let text = `{"id":"${run.id}","outcome":"${run.outcome}","delay_ms":${Math.round(run.delayMs)}`;
  if (run.token !== null) text += `,"token":${run.token}`;
  if (run.isTaken) text += `,"taken":true`;
  if (run.error !== undefined) text += `,"error":${JSON.stringify(run.error)}`;
  if (run.result !== undefined) text += `,"result":${run.result}`;
  if (run.label !== undefined) text += `,"label":${JSON.stringify(run.label)}`;
  if (run.fingerprint !== undefined) text += `,"fingerprint":${JSON.stringify(run.fingerprint)}`;
  if (run.parcelId !== undefined) text += `,"parcel_id":"${run.parcelId}"`;
  return `${text}}`;
}

/** Runs of one batch. `finished` are leases whose last job this settles. */
export async function settleItems(
  store: Store,
  batchId: string,
  runs: readonly ItemRun[],
  finished: readonly LeaseId[] = [],
): Promise<SettledItems> {
  const leases = `[${finished.map((lease) => `{"token":${lease.token},"lease_ms":${lease.leaseMs}}`).join(",")}]`;
  type Row = Advanced & {
    runs: { id: string; seq: number; verdict: ItemVerdict; label: string | null; runAt: string }[];
  };
  const { rows } = await store.query<Row>(SETTLE_ITEMS, [batchId, `[${runs.map(asJson).join(",")}]`, leases]);
  const row = rows[0];
  if (!row) return { items: [], advanced: undefined };
  const { runs: settled, ...advanced } = row;
  return { items: settled.map((one) => ({ ...one, runAt: new Date(one.runAt) })), advanced };
}

// A lost reply: what the run wrote is there. Otherwise as for any job.
const WHY_NOT = sql`
select s.id, coalesce(
  (select case when j.state = 'running' then 'locked' else 'back' end
    from :schema.jobs j where j.id = s.id and j.token = s.token),
  (select case when o.outcome is null then 'done' when o.outcome = 'cancelled' then 'cancelled'
      when o.outcome = 'error' then 'dead' else 'done' end
    from :schema.batch_outcomes o where o.batch_id = s.batch_id and o.seq = s.seq and o.job_id = s.id and o.token = s.token),
  'lost') as why
from jsonb_to_recordset($1::text::jsonb) as s (id uuid, token bigint, batch_id uuid, seq bigint)`;

export async function whyItemsNotSettled(
  store: Store,
  runs: readonly { id: string; token: string; batchId: string; seq: number }[],
): Promise<Map<string, WhyNot>> {
  const rows = runs.map(
    (run) => `{"id":"${run.id}","token":${run.token},"batch_id":"${run.batchId}","seq":${run.seq}}`,
  );
  const found = await store.query<{ id: string; why: WhyNot }>(WHY_NOT, [`[${rows.join(",")}]`]);
  return new Map(found.rows.map((row) => [row.id, row.why]));
}

const ITEMS_AMONG = sql`
select j.id, j.kind, j.rank, j.batch_id as "batchId", j.state, j.token, j.hold, j.crash_count as "crashCount",
  j.cancel_requested_at is not null as "isAsked", j.last_error as "lastError"
from :schema.jobs j where j.id = any($1::uuid[]) and j.batch_id is not null`;

export interface ItemJob {
  id: string;
  kind: string;
  rank: number;
  batchId: string;
  state: "pending" | "running";
  token: string | null;
  hold: number;
  crashCount: number;
  /** Somebody asked for its end. */
  isAsked: boolean;
  lastError: ErrorRecord | null;
}

/** Which of these jobs are items, and whose. */
export async function itemsAmong(store: Store, ids: readonly string[]): Promise<ItemJob[]> {
  return (await store.query<ItemJob>(ITEMS_AMONG, [ids])).rows;
}
