// Job events as log lines. Failures are always told; what went well only where somebody is watching.
import type { Holdfast } from "../client/client.ts";
import { formatDuration } from "../shared/duration.ts";
import type { Log, LogLevel } from "./log.ts";

export function reportJobs(hf: Holdfast, log: Log, doneLevel: LogLevel): void {
  // A listener nobody reads would cost every job something.
  if (log.shows(doneLevel)) {
    hf.on("job.done", ({ jobId, kind, attempt, durationMs }) =>
      log[doneLevel](`${kind} done in ${formatDuration(durationMs)}`, {
        jobId,
        attempt: attempt > 1 ? attempt : undefined,
      }),
    );
    hf.on("job.released", ({ jobId, kind }) => log[doneLevel](`${kind} given back, uncharged`, { jobId }));
    hf.on("job.cancelled", ({ jobId, kind }) => log[doneLevel](`${kind} cancelled`, { jobId }));
  }
  hf.on("job.retrying", ({ jobId, kind, attempt, error, runAt }) => {
    const wait = formatDuration(Math.max(0, runAt.getTime() - Date.now()));
    log.warn(`${kind} failed, try ${attempt}; again in ${wait}`, { error, jobId });
  });
  hf.on("job.dead", ({ jobId, kind, attempt, error }) => {
    const hint = `To run it again: npx holdfast jobs retry ${jobId}`;
    log.error(`${kind} is dead after ${attempt} ${attempt === 1 ? "try" : "tries"}`, { error, jobId, hint });
  });
  hf.on("item.ended", ({ batchId, seq, kind, outcome, error }) => {
    if (outcome === "error") log.warn(`${kind} item ${seq} failed`, { error, batchId });
  });
  hf.on("lease.lost", ({ jobId, kind }) => log.warn(`${kind} lost its lease; another worker may have it`, { jobId }));
  hf.on("lease.expired", ({ jobId, kind }) =>
    log.warn(`${kind} recovered: the process that ran it is gone`, { jobId }),
  );
}
