// Row → Batch, row → item. snake_case ends here.
import type { Batch, BatchItem, BatchState, ItemState, OutcomeRule } from "../../job/batch.ts";
import type { ErrorRecord } from "../../job/outcome.ts";

export interface BatchRow {
  id: string;
  kind: string;
  queue: string;
  owner: string | null;
  key: string | null;
  state: BatchState;
  reason: string | null;
  concurrency: number;
  attempts: number;
  rank: number;
  declared: string | null;
  outcomes: Record<string, OutcomeRule>;
  acked_as: string | null;
  fields: Record<string, unknown>;
  created_at: Date;
  started_at: Date | null;
  paused_at: Date | null;
  closed_at: Date | null;
  finished_at: Date | null;
  completions: number;
  n: string;
  added: string;
  handed: string;
  ended_total: string;
  ended: Record<string, number>;
  running: number;
  /** Items per second, of the last half minute to minute. */
  rate: number | null;
}

// The newest entry of the log has the counters. What runs of what has a slot is looked up: a claim writes no log.
export const BATCH_COLUMNS = `b.id, b.kind, b.queue, b.owner, b.key, b.state, b.reason, b.concurrency, b.attempts, b.rank,
  b.total as declared, b.outcomes, b.acked_as, b.fields, b.created_at, b.started_at, b.paused_at, b.closed_at, b.finished_at,
  b.completions, l.n, l.added, l.handed, l.ended_total, l.ended,
  case when l.admitted = 0 then 0 else (select count(*) from :schema.jobs j
    where j.batch_id = b.id and j.state = 'running')::integer end as running,
  case when b.state = 'running' and l.ended_total > l.pace_before_ended
    then (l.ended_total - l.pace_before_ended) / nullif(date_part('epoch', :schema.clock() - l.pace_before_at), 0) end as rate`;

export const WITH_LOG = `:schema.batches b cross join lateral (
  select l.* from :schema.batch_log l where l.batch_id = b.id order by l.n desc limit 1) l`;

export function toBatch(row: BatchRow): Batch {
  const added = Number(row.added);
  const ended = Number(row.ended_total);
  const handedOver = Number(row.handed);
  const declared = row.declared === null ? null : Number(row.declared);
  const open = added - ended - handedOver;
  const counts: Record<string, number> = {
    pending: open - row.running,
    running: row.running,
    "handed-over": handedOver,
  };
  const countedAs: Record<string, number> = {};
  let warnings = 0;
  for (const label of new Set([...Object.keys(row.outcomes), "error", "cancelled", ...Object.keys(row.ended)])) {
    const count = row.ended[label] ?? 0;
    counts[label] = count;
    const rule = row.outcomes[label];
    const as = rule?.countsAs ?? label;
    countedAs[as] = (countedAs[as] ?? 0) + count;
    if (rule?.warning) warnings += count;
  }
  const left = (declared ?? added) - ended;
  return {
    id: row.id,
    kind: row.kind,
    queue: row.queue,
    owner: row.owner,
    key: row.key,
    state: row.state,
    reason: row.reason,
    total: declared ?? added,
    declared,
    added,
    closed: row.closed_at !== null,
    counts,
    countedAs,
    warnings,
    ended,
    rate: row.rate,
    etaMs: row.rate === null || row.rate <= 0 || row.state !== "running" ? null : Math.round((left / row.rate) * 1_000),
    concurrency: row.concurrency,
    attempts: row.attempts,
    priority: row.rank === 0 ? 0 : -row.rank,
    outcomes: row.outcomes,
    ackedAs: row.acked_as ?? Object.keys(row.outcomes)[0] ?? "done",
    fields: row.fields,
    completions: row.completions,
    version: row.n,
    createdAt: row.created_at,
    startedAt: row.started_at,
    pausedAt: row.paused_at,
    closedAt: row.closed_at,
    finishedAt: row.finished_at,
  };
}

export interface ItemRow {
  seq: string;
  payload: unknown;
  outcome: string | null;
  handed: boolean;
  job_id: string | null;
  job_state: string | null;
  batch_state: BatchState;
  attempt: number | null;
  bounces: number | null;
  error: ErrorRecord | null;
  result: unknown;
  run_at: Date | null;
  at: Date | null;
  started_at: Date | null;
  parcel_id: string | null;
  handed_until: Date | null;
}

export const ITEM_COLUMNS = `i.seq, i.payload, o.outcome, o.seq is not null and o.outcome is null as handed,
  coalesce(j.id, o.job_id) as job_id, j.state as job_state, $2::text as batch_state, coalesce(j.attempt, o.attempt) as attempt,
  coalesce((j.payload ->> 'bounces')::integer, o.bounces) as bounces,
  case when j.id is null then o.error else j.last_error end as error, o.result, j.run_at, o.at,
  coalesce(j.started_at, o.started_at) as started_at, o.parcel_id, o.handed_until`;

/** Of items `i`: what became of them, and the job of those that are in a slot. */
export const WITH_OUTCOME = `
left join :schema.batch_outcomes o on o.batch_id = i.batch_id and o.seq = i.seq
left join :schema.jobs j on j.batch_id = i.batch_id and j.batch_seq = i.seq`;

export function toItem(row: ItemRow): BatchItem {
  return {
    seq: Number(row.seq),
    state: stateOf(row),
    payload: row.payload,
    attempt: row.attempt ?? 0,
    bounces: row.bounces ?? 0,
    error: row.error,
    result: row.result,
    jobId: row.job_id,
    parcelId: row.parcel_id,
    handedUntil: row.handed_until,
    runAt: row.run_at,
    startedAt: row.started_at,
    endedAt: row.handed ? null : row.at,
  };
}

function stateOf(row: ItemRow): ItemState {
  if (row.outcome !== null) return row.outcome;
  if (row.handed) return "handed-over";
  if (row.job_state === "running") return "running";
  return row.batch_state === "cancelled" ? "cancelled" : "pending";
}
