// What happened to a job, attempt by attempt, on one line of time.
import type { Output } from "../api/call.ts";
import { firstLine, now, time, took } from "../format.ts";
import { Empty } from "../ui/parts.tsx";
import { ErrorChain, type Failure } from "./error-chain.tsx";

type Job = Output<"readJob">;

interface Bar {
  name: string;
  from: number;
  to: number;
  look: "wait" | "bad" | "good" | "running";
  how: string;
  error?: Failure | null;
}

const ENDS: Record<string, string> = {
  retry: "failed, tried again",
  dead: "failed, the last one",
  cancelled: "cancelled",
};

function barsOf(job: Job, at: number): Bar[] {
  const bars: Bar[] = [];
  let before = Date.parse(job.createdAt);
  for (const failed of job.attempts) {
    const end = Date.parse(failed.failedAt);
    const start = failed.startedAt === null ? end : Date.parse(failed.startedAt);
    if (start > before) bars.push({ name: "Wait", from: before, to: start, look: "wait", how: took(start - before) });
    const crashed = failed.error?.reason === "crashed";
    bars.push({
      name: `Attempt ${failed.attempt}`,
      from: start,
      to: end,
      look: "bad",
      how: `${took(failed.durationMs)}, ${crashed ? "its process died" : failed.error?.reason === "timeout" ? "timed out" : (ENDS[failed.outcome] ?? failed.outcome)}`,
      error: failed.error,
    });
    before = end;
  }
  const started = job.startedAt === null ? null : Date.parse(job.startedAt);
  if (
    started !== null &&
    started >= before &&
    (job.status === "running" || job.status === "stuck" || job.finishedAt !== null)
  ) {
    const end = job.finishedAt === null ? at : Date.parse(job.finishedAt);
    if (started > before)
      bars.push({ name: "Wait", from: before, to: started, look: "wait", how: took(started - before) });
    const look = job.finishedAt === null ? "running" : job.status === "done" ? "good" : "bad";
    bars.push({
      name: `Attempt ${job.attempt}`,
      from: started,
      to: end,
      look,
      how: `${took(end - started)}, ${job.status}`,
    });
  } else if (job.finishedAt === null && job.status !== "dead") {
    bars.push({ name: "Wait", from: before, to: at, look: "wait", how: `${took(at - before)} so far` });
  }
  return bars;
}

/** One bar for each attempt and each wait between them, on one line of time; each said in words as well. */
export function Timeline({ job }: { job: Job }) {
  const bars = barsOf(job, now.value);
  const first = bars[0]?.from ?? 0;
  const whole = Math.max(1, (bars.at(-1)?.to ?? 0) - first);
  const marks = job.notes
    .map(({ name, writtenAt }) => ({ name, at: (Date.parse(writtenAt) - first) / whole }))
    .filter(({ at }) => at >= 0 && at <= 1);
  if (bars.length === 0) return <Empty title="It has not run yet." />;
  return (
    <ol class="timeline">
      {bars.map((bar, index) => (
        <li key={index} class={bar.look === "wait" ? "timeline-row timeline-wait" : "timeline-row"}>
          <span class="timeline-name">{bar.name}</span>
          <span class="timeline-track" aria-hidden="true">
            <span
              class={`timeline-bar timeline-${bar.look}`}
              style={{
                marginLeft: `${(100 * (bar.from - first)) / whole}%`,
                width: `${Math.max(0.6, (100 * (bar.to - bar.from)) / whole)}%`,
              }}
            />
            {bar.look !== "wait" &&
              marks.map((mark) => (
                <span key={mark.name} class="timeline-mark" style={{ left: `${100 * mark.at}%` }} title={mark.name} />
              ))}
          </span>
          <span class="timeline-how">
            <span title={time(bar.from)}>{bar.how}</span>
            {bar.error && (
              <details>
                <summary class="cut">
                  {bar.error.name}: {firstLine(bar.error.message)}
                </summary>
                <ErrorChain error={bar.error} />
              </details>
            )}
          </span>
        </li>
      ))}
    </ol>
  );
}
