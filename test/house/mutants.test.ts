// test/mutants.mjs breaks built code by its text. Whoever changes that text hears of it here, and not in the next run of the
// mutants, which may be long after.
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { expect, test } from "vitest";
import { root } from "./sources.ts";

test("every mutant finds what it breaks", () => {
  const { status, stderr } = spawnSync(process.execPath, [join(root, "test/mutants.mjs"), "--check"], {
    encoding: "utf8",
  });
  expect(stderr).toBe("");
  expect(status).toBe(0);
});
