// Waits over HTTP until a job has ended, and tells how.
import { formatDuration } from "../shared/duration.ts";
import { isFinal } from "../job/states.ts";
import type { JobView } from "../http/contracts/jobs.ts";
import type { Api } from "./api.ts";
import { EXIT } from "./exit-codes.ts";
import { keepLooking } from "./keep-looking.ts";
import { printable } from "./printable.ts";
import { Problem } from "./problem.ts";

/** `onLook` is told of the job each time it was looked at. */
export async function waitForJob(
  api: Api,
  id: string,
  timeoutMs = Infinity,
  onLook: (job: JobView) => void = () => {},
): Promise<JobView> {
  return await keepLooking({
    async look() {
      const job = await api.read(id);
      onLook(job);
      return job;
    },
    isOver: ({ state }) => isFinal(state),
    timeoutMs,
    tooLate: (last) =>
      new Problem(
        `Job ${id} is ${last?.status ?? "not seen yet"} after ${formatDuration(timeoutMs)} of waiting.`,
        `It goes on. Look at it with \`holdfast jobs show ${id}\`.`,
        EXIT.waitTimeout,
      ),
    mostPauseMs: 1_000,
  });
}

/** Where it stands, on one line. */
export function describeStand({ status, attempt, maxAttempts, progress, lastError }: JobView): string {
  const tries = attempt > 1 ? `, try ${attempt} of ${maxAttempts}` : "";
  const done = progress ? `, ${progress.done}${progress.total === null ? "" : ` of ${progress.total}`}` : "";
  const note = progress?.note ? ` ${progress.note}` : "";
  const why = status === "retrying" && lastError ? `: ${lastError.name}: ${lastError.message}` : "";
  return printable(`${status}${tries}${done}${note}${why}`);
}

const SHOWN_RESULT = 2_000;

export function describeEnd(job: JobView): string {
  const tries = job.attempt === 1 ? "" : ` on try ${job.attempt}`;
  if (job.state === "done") {
    const result = job.result === null ? "" : `: ${JSON.stringify(job.result).slice(0, SHOWN_RESULT)}`;
    return printable(`Done${tries}${tookOf(job)}${result}`);
  }
  const why = job.lastError ? `: ${job.lastError.name}: ${job.lastError.message}` : ".";
  if (job.state === "cancelled") return "Cancelled.";
  return printable(`Dead${tries}${why}`);
}

function tookOf({ startedAt, finishedAt }: JobView): string {
  if (startedAt === null || finishedAt === null) return "";
  return ` in ${formatDuration(Math.max(0, Date.parse(finishedAt) - Date.parse(startedAt)))}`;
}
