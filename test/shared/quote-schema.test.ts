import { expect, test } from "vitest";
import { OptionInvalid } from "#src/errors.js";
import { quoteSchema } from "#src/shared/quote-schema.js";

test.each([
  ["holdfast", '"holdfast"'],
  ['x"; drop table y; --', '"x""; drop table y; --"'],
  ["'quoted'", "\"'quoted'\""],
  ["Große Aufträge", '"Große Aufträge"'],
  ["a".repeat(63), `"${"a".repeat(63)}"`],
])("%j becomes one identifier", (schema, quoted) => {
  expect(quoteSchema(schema)).toBe(quoted);
});

test.each([[""], ["a".repeat(64)], ["ä".repeat(32)], ["nul\0"], ["pg_mine"], [7], [null], [undefined]])(
  "%j is refused: Postgres could not keep it",
  (schema) => {
    // @ts-expect-error some of them are not even texts
    expect(() => quoteSchema(schema)).toThrow(OptionInvalid);
  },
);
