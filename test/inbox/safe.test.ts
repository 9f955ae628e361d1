// Names and types from anywhere become names and types that are safe everywhere.
import fc from "fast-check";
import { expect, test } from "vitest";
import { safeName } from "#src/inbox/safe-name.js";
import { safeType } from "#src/inbox/safe-type.js";
import { seedFrom } from "../support/random.ts";

// One for the file: what is tried again is the same run. fast-check names it when something fails.
const seed = seedFrom(process.env["FUZZ_SEED"]);

test.each([
  ["report.pdf", "report.pdf"],
  ["my report (1).pdf", "my_report__1_.pdf"],
  ["/etc/passwd", "passwd"],
  ["..\\..\\windows\\system.ini", "system.ini"],
  ["a/b/..", "file"],
  ["", "file"],
  [".", "file"],
  ["..", "file"],
  ["dir/", "file"],
  ["...", "..."],
  [".bashrc", ".bashrc"],
  ["отчёт.txt", "_____.txt"],
  ["😀.png", "_.png"],
  ["a\0b\n.txt", "a_b_.txt"],
  ['x"; rm -rf .txt', "x___rm_-rf_.txt"],
])("%j becomes %j", (given, expected) => {
  expect(safeName(given)).toBe(expected);
});

test("a long name keeps an extension of up to 16 characters, and no longer one", () => {
  const at100 = `${"a".repeat(96)}.txt`;
  expect(safeName(at100)).toBe(at100);
  expect(safeName(`${"a".repeat(97)}.txt`)).toBe(at100);
  expect(safeName(`${"a".repeat(200)}.${"e".repeat(15)}`)).toBe(`${"a".repeat(84)}.${"e".repeat(15)}`);
  expect(safeName(`${"a".repeat(200)}.${"e".repeat(16)}`)).toBe("a".repeat(100));
});

test("whatever comes in, a name is 1 to 100 plain characters, is no folder, and stays what it is the second time", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary", maxLength: 300 }), (given) => {
      const name = safeName(given);
      expect(name).toMatch(/^[A-Za-z0-9._-]{1,100}$/);
      expect([".", ".."]).not.toContain(name);
      expect(safeName(name)).toBe(name);
    }),
    { numRuns: 2_000, seed },
  );
});

test.each([
  ["", ""],
  ["image/png", "image/png"],
  ["Text/HTML; charset=utf-8", "text/html"],
  ["application/vnd.a+b.c-d_e", "application/vnd.a+b.c-d_e"],
  [" text/plain ", "text/plain"],
  ["text", "application/octet-stream"],
  ["text/", "application/octet-stream"],
  ["te xt/plain", "application/octet-stream"],
  ["text/plain\r\nx: y", "application/octet-stream"],
  ["text/plain/x", "application/octet-stream"],
  [";", "application/octet-stream"],
  [`text/${"x".repeat(65)}`, "application/octet-stream"],
])("the type %j becomes %j", (given, expected) => {
  expect(safeType(given)).toBe(expected);
});
