// Row → Job. snake_case ends here.
import type { FailedAttempt, Job, Progress } from "../../job/job.ts";
import type { ErrorRecord } from "../../job/outcome.ts";
import type { JobState } from "../../job/states.ts";

export interface JobRow {
  id: string;
  kind: string;
  queue: string;
  state: JobState;
  payload: unknown;
  result: unknown;
  rank: number;
  attempt: number;
  max_attempts: number;
  claim_count: number;
  key: string | null;
  group_key: string | null;
  coalesce_key: string | null;
  progress: Progress | null;
  last_error: ErrorRecord | null;
  created_at: Date;
  run_at: Date;
  started_at: Date | null;
  finished_at: Date | null;
  cancel_requested_at: Date | null;
}

/** Live jobs as they are: one that a light lease names runs, whatever its row says. */
export const LIVE_JOBS = `(select j.*, l.claimed_at from :schema.jobs j left join (
  select unnest(l.job_ids) as id, l.claimed_at from :schema.leases l where l.light) l on l.id = j.id) as j`;
export const LIVE_STATE = `case when claimed_at is null then state else 'running' end`;

/** The same columns from both tables, in one order. */
export const LIVE_COLUMNS = `id, kind, queue, ${LIVE_STATE} as state, payload, null::jsonb as result, rank,
  attempt + (claimed_at is not null)::integer as attempt, max_attempts,
  claim_count + (claimed_at is not null)::integer as claim_count, key, group_key, coalesce_key, progress, last_error,
  created_at, run_at, coalesce(claimed_at, started_at) as started_at, null::timestamptz as finished_at,
  cancel_requested_at`;
export const HISTORY_COLUMNS = `id, kind, queue, state, payload, result, rank, attempt, max_attempts,
  claim_count, key, group_key, coalesce_key, progress, last_error, created_at, run_at, started_at,
  finished_at, null::timestamptz as cancel_requested_at`;

export function toJob(row: JobRow): Job {
  return {
    id: row.id,
    kind: row.kind,
    queue: row.queue,
    state: row.state,
    payload: row.payload,
    result: row.result,
    priority: row.rank === 0 ? 0 : -row.rank,
    attempt: row.attempt,
    maxAttempts: row.max_attempts,
    claimCount: row.claim_count,
    key: row.key,
    group: row.group_key,
    coalesceKey: row.coalesce_key,
    progress: row.progress,
    lastError: row.last_error,
    createdAt: row.created_at,
    runAt: row.run_at,
    startedAt: row.started_at,
    finishedAt: row.finished_at,
    cancelRequestedAt: row.cancel_requested_at,
  };
}

export interface AttemptRow {
  attempt: number;
  claim_count: number;
  started_at: Date | null;
  failed_at: Date;
  outcome: string;
  error: ErrorRecord | null;
}

export function toFailedAttempt(row: AttemptRow): FailedAttempt {
  return {
    attempt: row.attempt,
    claimCount: row.claim_count,
    startedAt: row.started_at,
    failedAt: row.failed_at,
    durationMs: row.started_at ? row.failed_at.getTime() - row.started_at.getTime() : null,
    outcome: row.outcome,
    error: row.error,
  };
}
