// A job as the API shows it: plain JSON, times in ISO 8601, ids as text.
import type { FailedAttempt, Job } from "../job/job.ts";
import { statusOf } from "../job/states.ts";
import { hasRole, type Role } from "../shared/roles.ts";
import type { JobSummary, JobView } from "./contracts/jobs.ts";
import { redact } from "./redact.ts";

export const iso = (date: Date | null): string | null => date?.toISOString() ?? null;

/** In lists: without payload and result, which may be megabytes each. */
export function toJobSummary(job: Job, now: Date): JobSummary {
  return {
    id: job.id,
    kind: job.kind,
    queue: job.queue,
    state: job.state,
    status: statusOf(job, now),
    attempt: job.attempt,
    maxAttempts: job.maxAttempts,
    claimCount: job.claimCount,
    priority: job.priority,
    key: job.key,
    group: job.group,
    coalesce: job.coalesceKey,
    progress: job.progress,
    lastError: job.lastError,
    createdAt: job.createdAt.toISOString(),
    runAt: job.runAt.toISOString(),
    startedAt: iso(job.startedAt),
    finishedAt: iso(job.finishedAt),
    cancelRequestedAt: iso(job.cancelRequestedAt),
  };
}

/** Whoever may not act on jobs does not see what looks like a secret in them. */
export function toJobView(job: Job, attempts: readonly FailedAttempt[], now: Date, role: Role): JobView {
  const shown = hasRole(role, "operator") ? (value: unknown) => value : redact;
  return {
    ...toJobSummary(job, now),
    payload: shown(job.payload),
    result: shown(job.result ?? null),
    attempts: attempts.map((failed) => ({
      ...failed,
      startedAt: iso(failed.startedAt),
      failedAt: failed.failedAt.toISOString(),
    })),
  };
}
