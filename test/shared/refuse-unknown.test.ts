import { expect, test } from "vitest";
import { OptionInvalid } from "#src/errors.js";
import { refuseUnknown } from "#src/shared/refuse-unknown.js";

const KNOWN = ["concurrency", "poll", "grace", "abortGrace", "name"];

function hintFor(given: object): string {
  try {
    refuseUnknown("work()", given, KNOWN);
  } catch (error) {
    if (error instanceof OptionInvalid) return `${error.message} ${error.hint}`;
    throw error;
  }
  return "";
}

test("known options pass, in any number", () => {
  expect(hintFor({})).toBe("");
  expect(hintFor({ poll: "1s", name: "a" })).toBe("");
});

test.each([
  ["concurency", "concurrency"],
  ["Concurrency", "concurrency"],
  ["polling", "poll"],
  ["abortgrace", "abortGrace"],
])("%s suggests %s", (wrong, right) => {
  expect(hintFor({ [wrong]: 1 })).toBe(`work() has the unknown option "${wrong}". Did you mean "${right}"?`);
});

test("what resembles nothing gets the whole list", () => {
  expect(hintFor({ xyzzy: 1 })).toContain("Known options: concurrency, poll, grace, abortGrace, name.");
});

test("an option that is there but undefined is still an unknown option", () => {
  expect(hintFor({ pol: undefined })).toContain('"poll"');
});
