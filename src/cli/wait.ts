// Waits over HTTP until a job has ended. A server that is away for a moment (a restart) is waited for too.
import { sleep } from "../shared/sleep.ts";
import { formatDuration } from "../shared/duration.ts";
import { isFinal } from "../job/states.ts";
import type { JobView } from "../http/contracts/jobs.ts";
import type { Api } from "./api.ts";
import { Unanswered } from "./requests.ts";
import { EXIT } from "./exit-codes.ts";
import { printable } from "./printable.ts";
import { Problem } from "./problem.ts";

const SERVER_MAY_BE_AWAY_MS = 30_000;

export async function waitForJob(api: Api, id: string, timeoutMs = Infinity): Promise<JobView> {
  const startedAt = performance.now();
  let lastSeenAt = startedAt;
  let seen = "not seen yet";
  for (let pause = 30; ; pause = Math.min(pause * 1.5, 1_000)) {
    try {
      const job = await api.read(id);
      lastSeenAt = performance.now();
      seen = job.status;
      if (isFinal(job.state)) return job;
    } catch (error) {
      const isAway = error instanceof Unanswered || (error instanceof Problem && error.exitCode === EXIT.temporary);
      if (!isAway || performance.now() - lastSeenAt > SERVER_MAY_BE_AWAY_MS) throw error;
    }
    const left = timeoutMs - (performance.now() - startedAt);
    if (left <= 0) {
      throw new Problem(
        `Job ${id} is ${seen} after ${formatDuration(timeoutMs)} of waiting.`,
        `It goes on. Look at it with \`holdfast jobs show ${id}\`.`,
        EXIT.waitTimeout,
      );
    }
    await sleep(Math.min(pause, left));
  }
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
