// One job as a page of text.
import type { JobView } from "../http/contracts/jobs.ts";
import { printable, printableLines } from "./printable.ts";

export function showJob(job: JobView): string {
  const { progress, lastError } = job;
  const facts: [string, unknown][] = [
    ["id", job.id],
    ["kind", job.kind],
    ["queue", job.queue],
    ["status", job.status === job.state ? job.state : `${job.status} (${job.state})`],
    ["try", `${job.attempt} of ${job.maxAttempts}`],
    ["priority", job.priority],
    ["key", job.key],
    ["group", job.group],
    ["coalesce", job.coalesce],
    ["created", job.createdAt],
    ["due", job.runAt],
    ["started", job.startedAt],
    ["finished", job.finishedAt],
    ["cancel asked", job.cancelRequestedAt],
    [
      "progress",
      progress && `${progress.done}${progress.total === null ? "" : ` of ${progress.total}`} ${progress.note ?? ""}`,
    ],
    ["batch", job.batchId],
    // As text: a number with more digits than a double has is shown as it is.
    ["payload", job.payloadText],
    ["result", job.resultText],
    ["last error", lastError && `${lastError.name}: ${lastError.message}`],
    ...causesOf(lastError).map(({ name, message }): [string, string] => ["caused by", `${name}: ${message}`]),
  ];
  const lines = facts
    .filter(([, value]) => value !== null && value !== undefined)
    .map(([name, value]) => `${name.padEnd(13)}${printable(String(value)).trimEnd()}`);
  const failed = job.attempts.map(
    (attempt) =>
      `  ${attempt.failedAt}  try ${attempt.attempt}  ${printable(attempt.outcome)}  ${printable(attempt.error?.message ?? "")}`,
  );
  const stack = lastError?.stack ? ["", printableLines(lastError.stack)] : [];
  return [...lines, ...(failed.length > 0 ? ["failed tries", ...failed] : []), ...stack].join("\n");
}

/** What caused it, what caused that, and so on. */
function causesOf(error: JobView["lastError"]): NonNullable<JobView["lastError"]>[] {
  const causes = [];
  for (let cause = error?.cause; cause && causes.length < 10; cause = cause.cause) causes.push(cause);
  return causes;
}
