// Row → Job. snake_case ends here.
import type { FailedAttempt, Job, Progress } from "../../job/job.ts";
import type { ErrorRecord } from "../../job/outcome.ts";
import type { JobState, JobStatus } from "../../job/states.ts";
import { bounded } from "../sql.ts";

export interface JobRow {
  id: string;
  kind: string;
  queue: string;
  state: JobState;
  status: JobStatus;
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
  lease_expires_at: Date | null;
}

/**
 * Live jobs as they are: one that a light lease names runs, whatever its row says. `from` is the jobs table, or some of its
 * rows.
 */
export const liveJobs = (from = ":schema.jobs"): string => `(
  select j.*, l.claimed_at, coalesce(l.expires_at, case when j.state = 'running' then (
    select max(h.expires_at) from :schema.leases h where h.token = j.token) end) as lease_expires_at,
    j.hold in (5, 6) or exists (
      select 1 from :schema.queues q where q.name = j.queue and q.paused_at is not null) as is_paused
  from ${from} j left join (
    select unnest(l.job_ids) as id, l.claimed_at, l.expires_at from :schema.leases l where l.light
  ) l on l.id = j.id) as j`;

const LIVE_STATE = `case when claimed_at is null then state else 'running' end`;
const LIVE_STATUS = `case when state = 'dead' then 'dead'
    when claimed_at is not null or state = 'running' then
      case when lease_expires_at < :schema.clock() then 'stuck' else 'running' end
    when is_paused then 'paused' when attempt > 0 then 'retrying'
    when run_at > :schema.clock() then 'scheduled' else 'ready' end`;

/** The same columns from both tables, in one order. */
export const LIVE_COLUMNS = `id, kind, queue, ${LIVE_STATE}::text as state, ${LIVE_STATUS} as status, payload,
  null::jsonb as result, rank, attempt + (claimed_at is not null)::integer as attempt, max_attempts,
  claim_count + (claimed_at is not null)::integer as claim_count, key, group_key, coalesce_key, progress, last_error,
  created_at, ${bounded("run_at")} as run_at, coalesce(claimed_at, started_at) as started_at, null::timestamptz as finished_at,
  cancel_requested_at, lease_expires_at`;
export const HISTORY_COLUMNS = `id, kind, queue, state::text as state, state::text as status, payload, result, rank, attempt,
  max_attempts, claim_count, key, group_key, coalesce_key, progress, last_error, created_at,
  ${bounded("run_at")} as run_at, started_at, finished_at, null::timestamptz as cancel_requested_at, null::timestamptz as lease_expires_at`;
/** What a routine that answers with them gives. */
export const COLUMN_TYPES = `id uuid, kind text, queue text, state text, status text, payload jsonb, result jsonb, rank smallint,
  attempt integer, max_attempts integer, claim_count integer, key text, group_key text, coalesce_key text, progress jsonb,
  last_error jsonb, created_at timestamptz, run_at timestamptz, started_at timestamptz, finished_at timestamptz,
  cancel_requested_at timestamptz, lease_expires_at timestamptz`;

/** Of the last error of a row, as the index of dead jobs has it. */
export const fingerprintIn = (row: string): string =>
  `coalesce(${row}.last_error ->> 'fingerprint', ${row}.last_error ->> 'reason', 'unknown') collate "C"`;

export function toJob(row: JobRow): Job {
  return {
    id: row.id,
    kind: row.kind,
    queue: row.queue,
    state: row.state,
    status: row.status,
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
    leaseExpiresAt: row.lease_expires_at,
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
