// The job of embedding one spec. A process that is busy with as many as it may gives the others back for a moment.
import { defineJob, type JobKind, Snooze } from "holdfast";
import { type EmbedPayload, embedSpec, type EmbedTools } from "./embed-spec.ts";
import { KIND } from "./names.ts";
import type { ResolvedOptions } from "./options.ts";

export type EmbedKind = JobKind<EmbedPayload>;

export function makeEmbedKind(options: ResolvedOptions, tools: EmbedTools): EmbedKind {
  let running = 0;
  return defineJob<EmbedPayload>(KIND, {
    attempts: options.attempts,
    backoff: options.ladder,
    lease: options.leaseDuration,
    timeout: "24h",
    callTimeout: options.embedTimeout,
    async run(job) {
      if (running >= options.workers) throw new Snooze("1s");
      running += 1;
      try {
        await embedSpec(job, tools);
      } finally {
        running -= 1;
      }
    },
  });
}
