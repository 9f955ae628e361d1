// A job as the API shows it: plain JSON, times in ISO 8601, ids as text.
import type { FailedAttempt, Job } from "../job/job.ts";
import { hasRole, type Role } from "../shared/roles.ts";
import type { JobSummary, JobView } from "./contracts/jobs.ts";
import type { JobTexts } from "../store/jobs/read.ts";
import type { Note } from "../store/notes/list.ts";
import { redact, redactText } from "./redact.ts";

export const iso = (date: Date | null): string | null => date?.toISOString() ?? null;

/** In lists: without payload and result, which may be megabytes each. */
export function toJobSummary(job: Job): JobSummary {
  return {
    id: job.id,
    kind: job.kind,
    queue: job.queue,
    state: job.state,
    status: job.status,
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
    leaseExpiresAt: iso(job.leaseExpiresAt),
  };
}

export interface JobViewInput {
  job: Job;
  attempts: readonly FailedAttempt[];
  notes: readonly Note[];
  texts: JobTexts | undefined;
  role: Role;
}

/** Whoever may not act on jobs does not see what looks like a secret in them. */
export function toJobView({ job, attempts, notes, texts, role }: JobViewInput): JobView {
  const isSeen = hasRole(role, "operator");
  const shown = isSeen ? (value: unknown) => value : (value: unknown) => redact(value);
  const text = (json: string | null | undefined): string | null =>
    json === null || json === undefined ? null : isSeen ? json : redactText(json);
  return {
    ...toJobSummary(job),
    payload: shown(job.payload),
    result: shown(job.result ?? null),
    payloadText: text(texts?.payload) ?? "null",
    resultText: text(texts?.result),
    notes: notes.map((note) => ({
      ...note,
      text: isSeen || note.size > note.text.length ? note.text : redactText(note.text),
      writtenAt: note.writtenAt.toISOString(),
    })),
    attempts: attempts.map((failed) => ({
      ...failed,
      startedAt: iso(failed.startedAt),
      failedAt: failed.failedAt.toISOString(),
    })),
  };
}
