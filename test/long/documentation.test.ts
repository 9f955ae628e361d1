// The warnings of docs/long-jobs.md are those that there are. Its examples are pieces of the files in this folder, which
// test/docs/examples.test.ts holds; its SQL is run as it stands by examples.test.ts.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { defineJob } from "#src/job/define-job.js";
import { kindWarnings } from "#src/job/warnings.js";

const page = readFileSync(join(import.meta.dirname, "../../docs/long-jobs.md"), "utf8");

test("the warnings are the ones that there are, and no other", () => {
  const told = new Set(
    kindWarnings([
      defineJob("a", { callTimeout: "1m", run: () => undefined }),
      defineJob("b", { lease: "500ms", run: () => undefined }),
      defineJob("c", { timeout: "1s", run: () => undefined }),
      defineJob("d", { keepDone: "forever", run: () => undefined }),
    ]).map(({ code }) => code),
  );
  expect(told.size).toBe(4);
  const start = page.indexOf("\n## Warnings");
  const section = page.slice(start, page.indexOf("\n## ", start + 1));
  const onPage = [...section.matchAll(/^\| `([a-z-]+)` \|/gm)].map((found) => found[1]);
  expect(new Set(onPage)).toEqual(told);
});
