// The kind of batch: what an import is, how its items run, what they can come to.
import { type BatchKind, defineBatch, Snooze } from "holdfast";
import { type ImportTools, type Link, makeImportOne, type Outcome } from "./import-one.ts";
import { KIND, QUEUE } from "./kind-name.ts";
import { canonicalise } from "./links/canonical.ts";
import { longestRunMs, type ResolvedOptions } from "./options.ts";

export type ImportKind = BatchKind<Link, Link, Outcome>;

export function makeImportKind(options: ResolvedOptions, tools: ImportTools): ImportKind {
  const importOne = makeImportOne(tools);
  return defineBatch<Link, Link, Outcome>(KIND, {
    schema: LINK,
    queue: QUEUE,
    concurrency: options.concurrency,
    attempts: options.attempts,
    backoff: [...options.ladder],
    timeout: `${longestRunMs(options)}ms`,
    outcomes: { saved: {}, duplicate: {}, "consent-wall": { countsAs: "saved", warning: true } },
    handBack: { within: options.pickupTtl, tries: options.pickupTries, ackedAs: "saved" },
    keep: options.keep,
    async run(item) {
      try {
        const end = await importOne(item);
        tools.tally.run("processed");
        return end;
      } catch (error) {
        tools.tally.run(error instanceof Snooze ? "skipped" : "error");
        throw error;
      }
    },
  });
}

/** A Standard Schema by hand: whoever makes an import by the API gives links in the same form as everybody else. */
const LINK = {
  "~standard": {
    version: 1 as const,
    vendor: "article-import",
    validate(value: unknown): { value: Link } | { issues: { message: string; path?: string[] }[] } {
      const fields = (value !== null && typeof value === "object" ? value : {}) as Record<string, unknown>;
      const { url, title, again } = fields;
      if (typeof url !== "string") return { issues: [{ message: "is the address of a page", path: ["url"] }] };
      const canonical = canonicalise(url);
      if ("fault" in canonical)
        return { issues: [{ message: `cannot be imported: ${canonical.fault}`, path: ["url"] }] };
      if (title !== undefined && (typeof title !== "string" || title.length > 300)) {
        return { issues: [{ message: "is a text of at most 300 characters", path: ["title"] }] };
      }
      return {
        value: { url: canonical.url, ...(title !== undefined && { title }), ...(again === true && { again }) },
      };
    },
  },
};
