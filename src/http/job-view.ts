// A job as the API shows it: plain JSON, times in ISO 8601, ids as text.
import type { FailedAttempt, Job } from "../job/job.ts";
import type { JobSummary, JobView } from "./contracts/jobs.ts";
import type { JobTexts } from "../store/jobs/read.ts";
import type { Note } from "../store/notes/list.ts";
import type { Eyes } from "./eyes.ts";

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
  eyes: Eyes;
}

export function toJobView({ job, attempts, notes, texts, eyes }: JobViewInput): JobView {
  const text = (json: string | null | undefined): string | null =>
    json === null || json === undefined ? null : eyes.seeText(json, job.kind);
  return {
    ...toJobSummary(job),
    payload: eyes.see(job.payload, job.kind),
    result: eyes.see(job.result ?? null, job.kind),
    payloadText: text(texts?.payload) ?? "null",
    resultText: text(texts?.result),
    batchId: texts?.batchId ?? null,
    notes: notes.map((note) => ({
      ...note,
      // Of one that was cut nobody can say what in it is a secret: it is masked as a whole.
      text: eyes.seeText(note.text, job.kind, true),
      writtenAt: note.writtenAt.toISOString(),
    })),
    attempts: attempts.map((failed) => ({
      ...failed,
      startedAt: iso(failed.startedAt),
      failedAt: failed.failedAt.toISOString(),
    })),
  };
}
