// Errors that differ only in what they are about have one fingerprint; others have not.
import { expect, test } from "vitest";
import { fingerprintOf } from "#src/job/fingerprint.js";
import { recordError } from "#src/job/outcome.js";

const of = (message: string, fields: object = {}): string =>
  fingerprintOf(recordError(Object.assign(new Error(message), fields)));

test.each([
  ["Order 4111 has no price", "Order 7 has no price"],
  ["GET https://a.example/x?y=1 answered 503", "GET http://b.example answered 502"],
  ["no user ada@example.com", "no user bob+news@mail.example.org"],
  ["job 01a1e4a1-f8ca-700b-9d83-15f560ea2442 is gone", "job 01a1e4a1-0000-700b-9d83-15f560ea2443 is gone"],
  ["reading 'title' of \"article 5\"", "reading 'body' of \"something else\""],
  ["took 1,234.5 ms", "took 3 ms"],
  ["hash deadbeef01234567 differs", "hash 0123456789abcdef01 differs"],
  ["two  lines\n  here", "two lines here"],
])("alike: %s", (one, other) => {
  expect(of(one)).toBe(of(other));
});

test("another text, name, code or reason is another error", () => {
  const all = [
    of("Order 1 has no price"),
    of("Order 1 has no owner"),
    of("Order 1 has no price", { name: "TypeError" }),
    of("Order 1 has no price", { code: "ECONNRESET" }),
    fingerprintOf(recordError(new Error("Order 1 has no price"), "fatal")),
  ];
  expect(new Set(all).size).toBe(all.length);
});

test("a message without end is read as far as it says something", () => {
  const long = `it failed ${"because ".repeat(100_000)}`;
  expect(of(`${long}1`)).toBe(of(`${long}2 and more`));
});
