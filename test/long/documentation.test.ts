// Every example of docs/long-jobs.md is a piece of a file in this folder that is run, line by line. Its SQL is run as it
// stands by examples.test.ts.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { defineJob } from "#src/job/define-job.js";
import { kindWarnings } from "#src/job/warnings.js";

const folder = import.meta.dirname;
const page = readFileSync(join(folder, "../../docs/long-jobs.md"), "utf8");

/** Without indentation and empty lines, which are all that an example may change. */
const plain = (code: string): string =>
  `\n${code
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "")
    .join("\n")}\n`;

function examples(text: string, language: string): string[] {
  return [...text.matchAll(/^```(\w+)\n(.*?)^```$/gms)]
    .filter((found) => found[1] === language)
    .map((found) => found[2]!);
}

const filesIn = (path: string): string[] =>
  readdirSync(join(folder, path), { withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name !== "documentation.test.ts")
    .map((entry) => plain(readFileSync(join(folder, path, entry.name), "utf8")));

test("the examples are taken from these tests", () => {
  const tests = [...filesIn("."), ...filesIn("children")];
  const found = [...examples(page, "ts"), ...examples(page, "js")];
  expect(found.length).toBeGreaterThan(9);
  expect(found.filter((example) => !tests.some((code) => code.includes(plain(example))))).toEqual([]);
});

test("no block is in a language that nobody runs", () => {
  const languages = [...page.matchAll(/^```(\w*)\n.*?^```$/gms)].map((found) => found[1]);
  expect(languages.filter((language) => !["ts", "js", "sql"].includes(language ?? ""))).toEqual([]);
});

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
  const section = page.slice(page.indexOf("\n## Warnings"));
  const onPage = [...section.matchAll(/^\| `([a-z-]+)` \|/gm)].map((found) => found[1]);
  expect(new Set(onPage)).toEqual(told);
});

test("an example that no test has is noticed", () => {
  expect(examples("a\n```ts\nawait nobody();\n```\nb\n```sql\nselect 1\n```\n", "ts")).toEqual(["await nobody();\n"]);
  expect(plain("  a\n\n    b\n")).toBe("\na\nb\n");
});
