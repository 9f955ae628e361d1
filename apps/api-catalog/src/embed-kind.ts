// The job of embedding one spec. A process that is busy with as many as it may gives the others back for a moment.
//
// A spec is given up after so many tries in a row that embedded nothing. A try that failed after it had embedded something is
// no sign that the next will not: a large document and an embedder that fails now and then would otherwise never end.
import { defineJob, Fatal, Gone, type JobContext, type JobKind, Snooze } from "holdfast";
import { type EmbedPayload, embedSpec, type EmbedTools } from "./embed-spec.ts";
import { KIND } from "./names.ts";
import type { ResolvedOptions } from "./options.ts";

export type EmbedKind = JobKind<EmbedPayload>;

/** The most that Holdfast counts; the end is decided here. */
const MOST_ATTEMPTS = 1_000;

export function makeEmbedKind(options: ResolvedOptions, tools: EmbedTools): EmbedKind {
  let running = 0;
  return defineJob<EmbedPayload>(KIND, {
    attempts: MOST_ATTEMPTS,
    backoff: options.ladder,
    lease: options.leaseDuration,
    timeout: "24h",
    callTimeout: options.embedTimeout,
    async run(job) {
      if (running >= options.workers) throw new Snooze("1s");
      running += 1;
      try {
        await embedSpec(job, tools);
      } catch (error) {
        throw (await isGivenUp(job, error, options.attempts, tools))
          ? new Fatal(messageOf(error), { cause: error })
          : error;
      } finally {
        running -= 1;
      }
    },
  });
}

async function isGivenUp(
  job: JobContext<EmbedPayload>,
  error: unknown,
  most: number,
  { hf }: EmbedTools,
): Promise<boolean> {
  if (error instanceof Gone || error instanceof Fatal || job.signal.aborted) return false;
  // No answer: it is tried again, and decided then.
  const found = await hf.sql
    .query<{ attempt: number }>(
      `select fruitful_attempt as attempt from :schema.catalog_specs where id = $1 and fruitful_job_id = $2`,
      [job.payload.spec, job.id],
    )
    .catch(() => undefined);
  return found !== undefined && job.attempt - (found.rows[0]?.attempt ?? 0) >= most;
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
