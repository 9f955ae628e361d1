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
        throw await endOf(job, error, options.attempts, tools);
      } finally {
        running -= 1;
      }
    },
  });
}

/** What a failed try means: another one, none because there were enough, or none because the spec is gone. */
async function endOf(
  job: JobContext<EmbedPayload>,
  error: unknown,
  most: number,
  { hf }: EmbedTools,
): Promise<unknown> {
  if (error instanceof Gone || error instanceof Fatal || job.signal.aborted) return error;
  // An upload gives the job all its tries again: a fruitful one that is ahead of it was before that.
  const found = await hf.sql
    .query<{ attempt: number }>(
      `select case when fruitful_job_id = $2 and fruitful_attempt <= $3 then fruitful_attempt else 0 end as attempt
       from :schema.catalog_specs where id = $1`,
      [job.payload.spec, job.id, job.attempt],
    )
    .catch(() => undefined);
  // No answer: it is tried again, and decided then.
  if (!found) return error;
  const [fruitful] = found.rows;
  if (!fruitful) return new Gone("The spec was deleted while it was being embedded.");
  return job.attempt - fruitful.attempt >= most ? new Fatal(messageOf(error), { cause: error }) : error;
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
