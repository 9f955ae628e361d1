// How a job stands, in the words of its badge.
import type { JobSummary } from "#src/http/contracts/jobs.js";
import { shortSpan, span } from "./span.ts";

export type BadgeJob = Pick<
  JobSummary,
  | "status"
  | "attempt"
  | "maxAttempts"
  | "runAt"
  | "startedAt"
  | "progress"
  | "lastError"
  | "finishedAt"
  | "leaseExpiresAt"
>;

const tries = (attempt: number): string => (attempt === 1 ? "1 try" : `${attempt} tries`);

export function wordsOf(job: BadgeJob, at: number): string {
  const { status, attempt, progress } = job;
  switch (status) {
    case "scheduled":
      return `scheduled in ${shortSpan(Date.parse(job.runAt) - at)}`;
    case "ready":
      return `ready ${span(at - Date.parse(job.runAt))}`;
    case "running": {
      const part = progress?.total ? ` · ${Math.floor((100 * progress.done) / progress.total)} %` : "";
      return `running ${span(at - Date.parse(job.startedAt ?? job.runAt))}${part}`;
    }
    case "retrying":
      return `retrying (${tries(attempt)})`;
    case "done":
      return attempt > 1 ? `done after ${tries(attempt)}` : "done";
    case "dead":
      return `dead after ${tries(attempt)}`;
    default:
      return status;
  }
}
