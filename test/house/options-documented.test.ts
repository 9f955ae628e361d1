// docs/options.md names every option that has a default, docs/inbox.md every option of the inbox and docs/guarded-fetch.md every option of the
// guarded fetch, with the default it really has.
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { BATCH_DEFAULTS } from "#src/job/define-batch.js";
import { GUARDED_FETCH_DEFAULTS } from "#src/guarded-fetch/options.js";
import { INBOX_DEFAULTS } from "#src/options/inbox.js";
import { CHORE_DEFAULTS } from "#src/job/define-chore.js";
import { CHUNK_DEFAULTS } from "#src/worker/chunks.js";
import { POLL_DEFAULTS } from "#src/inbox/poll.js";
import { RUN_DUE_DEFAULTS } from "#src/testing/run-due.js";
import { SERVE_DEFAULTS } from "#src/http/serve.js";
import { OPEN_DEFAULTS, WORK_DEFAULTS } from "#src/options.js";

function section(page: string, title: string): string {
  const parts = readFileSync(page, "utf8").split(/^## /m);
  return parts.find((part) => part.startsWith(title)) ?? "";
}

/** As they are written in a definition. */
function asWritten({ within, tries, ...defaults }: typeof BATCH_DEFAULTS): Record<string, unknown> {
  return { ...defaults, backoff: [...defaults.backoff], "handBack.within": within, "handBack.tries": tries };
}

test.each([
  ["docs/options.md", "`open(options)`", OPEN_DEFAULTS],
  ["docs/options.md", "`hf.work(kinds, options)`", WORK_DEFAULTS],
  ["docs/inbox.md", "Limits", INBOX_DEFAULTS],
  ["docs/guarded-fetch.md", "", GUARDED_FETCH_DEFAULTS],
  ["docs/options.md", "`defineBatch(kind, options)`", asWritten(BATCH_DEFAULTS)],
  ["docs/options.md", "`job.chunks(name, items, options)`", CHUNK_DEFAULTS],
  ["docs/options.md", "`defineChore(name, options)`", CHORE_DEFAULTS],
  ["docs/options.md", "`inbox.poll(options)`", POLL_DEFAULTS],
  ["docs/options.md", "`serve(options)`", SERVE_DEFAULTS],
  ["docs/options.md", "`runDue(hf, kinds, options)`", RUN_DUE_DEFAULTS],
])("%s: %s", (page, title, defaults) => {
  for (const [name, value] of Object.entries(defaults)) {
    const line = section(page, title)
      .split("\n")
      .find((row) => row.startsWith(`| \`${name}\``));
    expect(line, `${name} in ${title || page}`).toBeDefined();
    if (typeof value !== "object") expect(line).toContain(`\`${JSON.stringify(value)}\``);
  }
});
