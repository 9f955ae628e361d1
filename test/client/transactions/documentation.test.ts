// Every example of docs/transactions.md is a piece of a test in this folder, line by line.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

const folder = import.meta.dirname;

/** Without indentation and empty lines, which are all that an example may change. */
const plain = (code: string): string =>
  `\n${code
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "")
    .join("\n")}\n`;

function examples(page: string): string[] {
  return [...page.matchAll(/^```ts\n(.*?)^```$/gms)].map((found) => found[1]!);
}

test("the examples of docs/transactions.md are taken from these tests", () => {
  const page = readFileSync(join(folder, "../../../docs/transactions.md"), "utf8");
  const tests = readdirSync(folder).map((name) => plain(readFileSync(join(folder, name), "utf8")));
  const found = examples(page);
  expect(found.length).toBeGreaterThan(7);
  expect(found.filter((example) => !tests.some((code) => code.includes(plain(example))))).toEqual([]);
});

test("an example that no test has is noticed", () => {
  expect(examples("a\n```ts\nawait nobody();\n```\nb\n```sh\nls\n```\n")).toEqual(["await nobody();\n"]);
  expect(plain("  a\n\n    b\n")).toBe("\na\nb\n");
});
