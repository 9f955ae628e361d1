// Writes how runs ended. Every row is guarded by (id, token, running): a run that lost its lease changes nothing.
//
// `settleDone` is the hot path: success, no group, no coalesced rerun; the row moves to the history. `settleRuns`
// decides everything else in one statement, and admits the next of a group in the same commit. Items of batches are left
// alone by both: store/batches/settle.ts ends them. Both skip what they may not or cannot touch now; `whyNotSettled` tells locked from settled-already from lost.
import { fingerprintOf } from "../../job/fingerprint.ts";
import type { ErrorRecord } from "../../job/outcome.ts";
import type { LeaseId } from "./beat.ts";
import { followerAttempts } from "./follower.ts";
import { routine, sql, sqlUuidv7, type Store } from "../sql.ts";

export interface DoneRun {
  id: string;
  token: string;
  /** JSON text, or undefined for none. */
  result?: string | undefined;
  /** null: for ever. */
  keepMs: number | null;
}

export interface EndedRun extends DoneRun {
  /** Instead of `keepMs`, if it ends cancelled. */
  keepEndedMs: number | null;
  outcome: "done" | "retry" | "dead" | "snooze" | "release" | "cancelled";
  delayMs: number;
  error?: ErrorRecord | undefined;
  group: string | null;
}

export type Verdict = "done" | "again" | "retry" | "snooze" | "release" | "dead" | "cancelled";
export interface SettledRun {
  id: string;
  token: string;
  verdict: Verdict;
  runAt: Date;
  /** The job that was admitted in its place. */
  heir: string | null;
}

const SHORT_KEEP_MS = 6 * 86_400_000;
export const HISTORY_TARGET = `:schema.job_history (id, finished_at, created_at, run_at, started_at, purge_at, purge_early, token,
    attempt, max_attempts, claim_count, rank, state, kind, queue, payload, result, key, coalesce_key, group_key,
    last_error, progress, headers)`;
export const PURGE_AT = (keep: string): string =>
  `:schema.clock() + ${keep} * interval '1 millisecond', coalesce(${keep} < ${SHORT_KEEP_MS}, false)`;

const LOCK_TIMEOUT = `perform set_config('lock_timeout', '100ms', true);`;

const SETTLE_DONE = routine({
  name: "settle_done",
  takes: ["text", "text"],
  gives: "id uuid",
  first: LOCK_TIMEOUT,
  body: `with s as materialized (
  select s.* from jsonb_to_recordset($1::jsonb) as s (id uuid, token bigint, result jsonb, keep_ms bigint)
),
gone as (
  delete from :schema.jobs j using s
  where j.id = s.id and j.token = s.token and j.state = 'running' and j.rerun is null and j.group_key is null
    and j.batch_id is null
  returning j.*, s.result, s.keep_ms
),
released as (
  delete from :schema.leases l using jsonb_to_recordset($2::jsonb) as d (token bigint, lease_ms integer)
  where l.token = d.token and l.lease_ms = d.lease_ms
    -- A run that is not done yet still needs its lease.
    and (select count(*) from gone) = (select count(*) from s)
)
insert into ${HISTORY_TARGET}
select id, :schema.clock(), created_at, run_at, started_at, ${PURGE_AT("keep_ms")}, token,
  attempt, max_attempts, claim_count, rank, 'done', kind, queue, payload, result, key, coalesce_key, null,
  null, progress, headers
from gone
returning id`,
});

const LEASE = "l.token = $2::bigint and l.lease_ms = $4";
const IS_PLAIN = "j.rerun is null and j.group_key is null and j.batch_id is null";

// The same for runs of one claim that left no result: one token, one index scan for all ids. `light`: the claim has not
// marked the rows, and cannot while we hold its lease's row.
const settleClaimBody = (light: boolean): string => `with gone as (
  delete from :schema.jobs j
  where j.id = any($1) and ${light ? "j.state = 'pending'" : "j.token = $2::bigint and j.state = 'running'"} and ${IS_PLAIN}
  returning j.id, j.created_at, j.run_at, j.started_at, j.attempt, j.max_attempts, j.claim_count, j.rank,
    j.kind, j.queue, j.payload, j.key, j.coalesce_key, j.progress, j.headers
),
released as (
  delete from :schema.leases l where $5 and ${LEASE} and (select count(*) from gone) = $6
)
insert into ${HISTORY_TARGET}
select id, :schema.clock(), created_at, run_at,
  ${light ? `(select l.claimed_at from :schema.leases l where ${LEASE})` : "started_at"},
  (select :schema.clock() + $3::bigint * interval '1 millisecond'), coalesce($3::bigint < ${SHORT_KEEP_MS}, false), $2::bigint,
  ${light ? "attempt + 1, max_attempts, claim_count + 1" : "attempt, max_attempts, claim_count"}, rank, 'done', kind, queue,
  payload, null, key, coalesce_key, null, null, progress, headers
from gone`;

const SETTLE_CLAIM = routine({
  name: "settle_claim",
  takes: ["uuid[]", "bigint", "bigint", "integer", "boolean", "integer"],
  gives: "count",
  first: LOCK_TIMEOUT,
  body: settleClaimBody(false),
  instead: {
    when: `exists (select 1 from :schema.leases l where ${LEASE} and l.light for share of l)`,
    first: "",
    body: settleClaimBody(true),
  },
});

// All that a light lease names, if that is as many as $4 expects: the ids need not be sent. Three plain statements: rows that
// go from a delete to an insert are put together and taken apart twice on their way. Nobody can change them in between, because
// we hold the lease's row (store/jobs/mark.ts); should there be anything else than the lease says, nothing is done.
const NOT_AS_SAID =
  "raise exception 'The jobs are not as their light lease says.' using errcode = 'lock_not_available';";
const SETTLE_LIGHT = routine({
  name: "settle_light",
  takes: ["bigint", "integer", "bigint", "integer"],
  gives: "count",
  declares: ["ids uuid[]", "since timestamptz", "kept bigint"],
  first: `${LOCK_TIMEOUT}
select l.job_ids, l.claimed_at into ids, since from :schema.leases l
where l.token = $1 and l.lease_ms = $2 and l.light and cardinality(l.job_ids) = $4 for update of l;
if ids is null then return 0; end if;
insert into ${HISTORY_TARGET}
select j.id, :schema.clock(), j.created_at, j.run_at, since, :schema.clock() + $3 * interval '1 millisecond',
  coalesce($3 < ${SHORT_KEEP_MS}, false), $1, j.attempt + 1, j.max_attempts, j.claim_count + 1, j.rank, 'done', j.kind, j.queue,
  j.payload, null, j.key, j.coalesce_key, null, null, j.progress, j.headers
from :schema.jobs j where j.id = any(ids) and j.state = 'pending' and ${IS_PLAIN};
get diagnostics kept = row_count;
if kept <> $4 then ${NOT_AS_SAID} end if;
delete from :schema.leases l where l.token = $1 and l.lease_ms = $2;`,
  body: `delete from :schema.jobs j where j.id = any(ids) and j.state = 'pending' and ${IS_PLAIN}`,
  after: `if changed <> $4 then ${NOT_AS_SAID} end if;`,
});

/** What ends a job and what follows from it, given a CTE `decided` with the row, its verdict, error, result, keep_ms. */
export const CONSEQUENCES = `
tries as (
  insert into :schema.attempts (job_id, claim_count, attempt, started_at, failed_at, outcome, error)
  select id, claim_count, attempt, started_at, :schema.clock(), verdict, error from decided
  where charged
  on conflict do nothing
),
ended as (
  delete from :schema.jobs j using decided d
  where j.id = d.id and d.verdict in ('done', 'cancelled')
  returning j.*, d.verdict, d.result, d.keep_ms, d.error
),
archived as (
  insert into ${HISTORY_TARGET}
  select id, :schema.clock(), created_at, run_at, started_at, ${PURGE_AT("keep_ms")}, token,
    attempt, max_attempts, claim_count, rank, verdict::text:: :schema.job_state, kind, queue, payload, result, key,
    coalesce_key, group_key, case when verdict = 'done' then error else coalesce(error, last_error) end, progress, headers
  from ended
),
buried as (
  update :schema.jobs j set state = 'dead', hold = 3, last_error = coalesce(d.error, j.last_error),
    cancel_requested_at = null
  from decided d where j.id = d.id and d.verdict = 'dead'
),
followed as (
  insert into :schema.jobs (id, kind, queue, rank, run_at, created_at, max_attempts, payload)
  select ${sqlUuidv7}, d.on_dead ->> 'kind', coalesce(d.on_dead ->> 'queue', d.queue), 0, :schema.clock(),
    :schema.clock(), ${followerAttempts("d.on_dead")},
    jsonb_build_object('job', jsonb_build_object('id', d.id, 'kind', d.kind, 'payload', d.payload,
      'error', coalesce(d.error, d.last_error), 'attempt', d.attempt), 'payload', d.on_dead -> 'payload')
  from decided d where d.verdict = 'dead' and d.on_dead is not null
),
freed as (
  select distinct d.group_key from decided d
  join :schema.job_groups g on g.name = d.group_key and g.head = d.id
  where d.verdict in ('done', 'cancelled', 'dead')
),
heirs as (
  select f.group_key, h.id from freed f left join lateral (
    select j.id from :schema.jobs j
    where j.group_key = f.group_key and j.hold = 1 and j.state = 'pending'
      and j.id not in (select id from decided)
    order by j.group_seq limit 1
  ) h on true
),
admitted as (
  update :schema.jobs j set hold = 0 from heirs h where j.id = h.id
),
passed_on as (
  update :schema.job_groups g set head = h.id from heirs h where g.name = h.group_key and h.id is not null
),
emptied as (
  delete from :schema.job_groups g using heirs h where g.name = h.group_key and h.id is null
)`;

/** Who is the head of the group now; it lies behind every watermark, so workers must be told of it by name. */
export const HEIR = `(select h.id from heirs h join :schema.job_groups g on g.name = h.group_key
  where h.group_key = d.group_key and g.head = d.id) as heir`;

/** Forgets what the runs of these jobs noted, where another enqueue takes the place of theirs; `of` is a CTE with their rows. */
export const FORGET = (of: string): string => `
forgotten as (
  delete from :schema.job_notes n using ${of} f where n.job_id = f.id and f.rerun is not null
),
forgotten_items as (
  delete from :schema.job_saved_items n using ${of} f where n.job_id = f.id and f.rerun is not null
)`;

const SETTLE_RUNS = routine({
  name: "settle_runs",
  takes: ["text"],
  gives: `id uuid, token bigint, verdict text, "runAt" timestamptz, heir uuid`,
  body: `with s as materialized (
  select * from jsonb_to_recordset($1::jsonb) as s (
    id uuid, token bigint, outcome text, delay_ms bigint, error jsonb, result jsonb, keep_ms bigint,
    keep_ended_ms bigint)
),
mine as materialized (
  select j.*, s.outcome, s.delay_ms, s.error, s.result, s.keep_ms as keep_done_ms, s.keep_ended_ms
  from s join :schema.jobs j on j.id = s.id
  where j.token = s.token and j.state = 'running' and j.batch_id is null
  order by j.id for update of j skip locked
),
decided as materialized (
  select m.*, v.verdict, case v.verdict when 'cancelled' then m.keep_ended_ms else m.keep_done_ms end as keep_ms,
    m.outcome in ('retry', 'dead') as charged
  from mine m cross join lateral (select
    case
      when m.rerun is not null and m.outcome <> 'release' then 'again'
      when m.outcome = 'done' then 'done'
      when m.outcome = 'cancelled' then 'cancelled'
      when m.cancel_requested_at is not null and m.rerun is null then 'cancelled'
      when m.outcome = 'dead' then 'dead'
      when m.outcome = 'retry' and m.attempt >= m.max_attempts then 'dead'
      else m.outcome
    end as verdict) v
),
back as (
  update :schema.jobs j set
    state = 'pending',
    -- What is given back to a paused queue is set aside, so that no claim walks past it again: store/queues/pause.ts.
    hold = case when d.verdict <> 'release' then 0
      when j.hold in (0, 2) and exists (
        select 1 from :schema.queues q where q.name = j.queue and q.paused_at is not null
      ) then case j.hold when 2 then 6 else 5 end
      else j.hold end,
    attempt = case when d.rerun is not null then 0 when d.verdict = 'retry' then j.attempt
      else greatest(j.attempt - 1, 0) end,
    payload = coalesce(d.rerun, j.payload),
    rerun = null,
    cancel_requested_at = null,
    run_at = case when d.verdict = 'release' then j.run_at
      else :schema.clock() + case when d.verdict = 'again' then 0 else coalesce(d.delay_ms, 0) end * interval '1 millisecond' end,
    crash_count = case when d.verdict = 'release' then j.crash_count else 0 end,
    last_error = coalesce(d.error, j.last_error)
  from decided d where j.id = d.id and d.verdict in ('retry', 'again', 'snooze', 'release')
  returning j.id, j.run_at
),
-- What was enqueued during the run starts afresh, whatever became of the run: what that one noted it had seen before.
${FORGET("decided")},
${CONSEQUENCES}
select d.id, d.token, d.verdict, coalesce(b.run_at, :schema.clock()) as "runAt", ${HEIR}
from decided d left join back b on b.id = d.id`,
});

const LOCK_GROUPS = sql`
with guard as materialized (select set_config('lock_timeout', '100ms', true))
select g.name from guard, :schema.job_groups g where g.name = any($1::text[]) order by g.name for update of g`;

const WHY_NOT = sql`
select s.id, coalesce(
  (select case when j.state = 'running' then 'locked' when j.state = 'dead' then 'dead' else 'back' end
    from :schema.jobs j where j.id = s.id and j.token = s.token),
  (select h.state::text from :schema.job_history h where h.id = s.id and h.token = s.token limit 1),
  'lost') as why
from jsonb_to_recordset($1::text::jsonb) as s (id uuid, token bigint)`;

function doneJson(run: DoneRun): string {
  const result = run.result === undefined ? "" : `,"result":${run.result}`;
  const keep = run.keepMs === null ? "" : `,"keep_ms":${run.keepMs}`;
  return `{"id":"${run.id}","token":${run.token}${result}${keep}}`;
}

function endedJson(run: EndedRun): string {
  const error = run.error === undefined ? "" : `,"error":${JSON.stringify(withFingerprint(run.error))}`;
  const keep = run.keepEndedMs === null ? "" : `,"keep_ended_ms":${run.keepEndedMs}`;
  return `${doneJson(run).slice(0, -1)},"outcome":"${run.outcome}","delay_ms":${Math.round(run.delayMs)}${error}${keep}}`;
}

/** The ids that are done now. `finished` are leases whose last job this settles. */
export async function settleDone(
  store: Store,
  runs: readonly DoneRun[],
  finished: readonly LeaseId[],
): Promise<Set<string>> {
  const leases = `[${finished.map((lease) => `{"token":${lease.token},"lease_ms":${lease.leaseMs}}`).join(",")}]`;
  const { rows } = await store.query<{ id: string }>(SETTLE_DONE, [`[${runs.map(doneJson).join(",")}]`, leases]);
  return new Set(rows.map((row) => row.id));
}

/** For runs that share their claim's lease. True: all of them are done now. `isLast`: the lease ends with them. */
export async function settleClaim(
  store: Store,
  lease: LeaseId,
  ids: readonly string[],
  keepMs: number | null,
  isLast: boolean,
): Promise<boolean> {
  // Written here: the driver would look at each id for what it may have to escape.
  const values = [`{${ids.join(",")}}`, lease.token, keepMs, lease.leaseMs, isLast, ids.length];
  const { rows } = await store.query<{ count: string }>(SETTLE_CLAIM, values);
  return Number(rows[0]!.count) === ids.length;
}

/** For all runs of a light claim at once. Nothing is done if it is not light any more, or names others than so many. */
export async function settleLightClaim(
  store: Store,
  lease: LeaseId,
  runs: number,
  keepMs: number | null,
): Promise<boolean> {
  const values = [lease.token, lease.leaseMs, keepMs, runs];
  const { rows } = await store.query<{ count: string }>(SETTLE_LIGHT, values);
  return Number(rows[0]!.count) === runs;
}

export async function settleRuns(store: Store, runs: readonly EndedRun[]): Promise<SettledRun[]> {
  const values = [`[${runs.map(endedJson).join(",")}]`];
  const groups = [...new Set(runs.flatMap((run) => run.group ?? []))];
  if (groups.length === 0) return (await store.query<SettledRun>(SETTLE_RUNS, values)).rows;
  // The groups' locks come first, in a statement of their own: only the next statement's snapshot is sure to see
  // every member that was enqueued under those locks.
  return await store.transaction(async (tx) => {
    await tx.query(LOCK_GROUPS, [groups]);
    return (await tx.query<SettledRun>(SETTLE_RUNS, values)).rows;
  });
}

export async function lockGroups(store: Store, groups: readonly string[]): Promise<void> {
  if (groups.length > 0) await store.query(LOCK_GROUPS, [groups]);
}

const LOCK_GROUP_PATIENTLY = sql`select name from :schema.job_groups where name = $1 for update`;

/** Inside a caller's transaction, whose lock timeout is the caller's own affair. */
export async function lockGroupPatiently(store: Store, group: string): Promise<void> {
  await store.query(LOCK_GROUP_PATIENTLY, [group]);
}

/** Locked by somebody, lost to somebody, or what an earlier request of ours made of it. */
export type WhyNot = "locked" | "lost" | "back" | "dead" | "done" | "cancelled";

export async function whyNotSettled(
  store: Store,
  runs: readonly { id: string; token: string }[],
): Promise<Map<string, WhyNot>> {
  const { rows } = await store.query<{ id: string; why: WhyNot }>(WHY_NOT, [
    `[${runs.map((run) => `{"id":"${run.id}","token":${run.token}}`).join(",")}]`,
  ]);
  return new Map(rows.map((row) => [row.id, row.why]));
}

function withFingerprint(error: ErrorRecord): ErrorRecord {
  return { ...error, fingerprint: fingerprintOf(error) };
}
