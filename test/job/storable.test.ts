// What a payload may hold: it comes back equal, or it is refused with its place. Without a database here;
// test/client/payload-*.test.ts asks Postgres.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { PayloadInvalid } from "#src/errors.js";
import { cleanText, MAX_PAYLOAD_BYTES, refuseRoundedIntegers, toStorableJson } from "#src/job/storable.js";
import { seedFrom } from "../support/random.ts";

// One for the file: what is tried again is the same run. fast-check names it when something fails.
const seed = seedFrom(process.env["FUZZ_SEED"]);

const back = (value: unknown): unknown => JSON.parse(toStorableJson("The payload", value));

const nest = (depth: number): unknown => (depth === 0 ? 1 : { a: nest(depth - 1) });

describe("taken as it is", () => {
  test.each<[string, unknown]>([
    ["null", null],
    ["false", false],
    ["an empty text", ""],
    ["unicode", "Grüße 👩‍👩‍👧‍👦 \u200b\u2028 ﷽ \u{10FFFF}"],
    ["control characters", '\u0001\u001f\u007f\n\r\t\b\f"\\/'],
    ["text that looks like an escape", "\\u0000 \\ud800 \\\\u0000"],
    ["an integer at the edge", Number.MAX_SAFE_INTEGER],
    ["an integer beyond 2^53 that a double holds", 2 ** 60],
    ["tiny and huge", [5e-324, 1.7976931348623157e308, -1.5e-10]],
    ["nested 199 deep", nest(199)],
    ["keys of all sorts", { "": 1, "a b": 2, ключ: 3, "\u0001": 4, constructor: 5, toString: 6 }],
  ])("%s", (_, value) => {
    expect(back(value)).toEqual(value);
  });

  test("a key called __proto__ stays a key, and nobody's prototype changes", () => {
    const payload: unknown = JSON.parse('{"__proto__":{"admin":true},"a":{"__proto__":[1]}}');
    expect(toStorableJson("The payload", payload)).toBe('{"__proto__":{"admin":true},"a":{"__proto__":[1]}}');
    expect({}).not.toHaveProperty("admin");
  });

  test("nothing at all, as null", () => {
    expect(back(undefined)).toBeNull();
  });

  test("a member that is undefined, as one that is not there", () => {
    expect(back({ a: undefined, b: 1 })).toEqual({ b: 1 });
  });

  test("what says itself how it is written: a date, a URL", () => {
    expect(back({ at: new Date(0), url: new URL("https://a.b/") })).toEqual({
      at: "1970-01-01T00:00:00.000Z",
      url: "https://a.b/",
    });
  });

  test("ten megabytes, to the byte", () => {
    expect(toStorableJson("The payload", "x".repeat(MAX_PAYLOAD_BYTES - 2))).toHaveLength(MAX_PAYLOAD_BYTES);
  });
});

describe("refused, with the place", () => {
  const cycle: Record<string, unknown> = { a: 1 };
  cycle["self"] = cycle;
  const list: unknown[] = [];
  list.push(list);

  test.each<[string, unknown, string]>([
    ["NUL", { a: ["x", "y\0"] }, "The payload at .a[1] holds a NUL character"],
    ["half of a surrogate pair", { a: "\uD83D" }, "The payload at .a holds half of a surrogate pair"],
    ["NUL in a key", { "a\0": 1 }, "has a key with a NUL character"],
    ["half a pair in a key", { "\uDC00": 1 }, "half of a surrogate pair"],
    ["NaN", { a: NaN }, "The payload at .a is NaN"],
    ["Infinity", [1, -Infinity], "The payload at [1] is -Infinity"],
    ["a BigInt", { n: 2n ** 53n + 1n }, "The payload at .n is a BigInt"],
    ["a function", { f: () => 1 }, "The payload at .f is a function"],
    ["a symbol", { s: Symbol("s") }, "The payload at .s is a symbol"],
    ["a Map", { m: new Map([[1, 2]]) }, "The payload at .m is a Map"],
    ["a Set", { m: new Set([1]) }, "The payload at .m is a Set"],
    ["a list that begins with nothing", [undefined, 1], "The payload at [0] is undefined"],
    // oxlint-disable-next-line no-sparse-arrays -- that is the case
    ["a list with a hole", [1, , 2], "The payload at [1] is undefined"],
    ["a promise", { p: Promise.resolve(1) }, "The payload at .p is a Promise"],
    ["a regular expression", { r: /x/ }, "The payload at .r is a RegExp"],
    ["an error", { e: new Error("x") }, "The payload at .e is an Error"],
    ["bytes", { b: new Uint8Array(2) }, "The payload at .b is a Uint8Array"],
    ["a buffer of bytes", { b: new ArrayBuffer(2) }, "The payload at .b is an ArrayBuffer"],
    ["a date that is none", { at: new Date("x") }, "The payload at .at is an invalid Date"],
    ["an object that holds itself", cycle, "nested deeper than 200 levels (or holds itself)"],
    ["a list that holds itself", list, "nested deeper than 200 levels"],
    ["nested 201 deep", nest(201), "nested deeper than 200 levels"],
    ["a toJSON that makes a NUL", { toJSON: () => "\0" }, "holds a NUL character"],
    [
      "a toJSON that throws",
      {
        toJSON: () => {
          throw new Error("mine");
        },
      },
      "cannot be written as JSON: mine",
    ],
    ["a toJSON that nests too deep", { toJSON: () => nest(5_000) }, "nested deeper than 200 levels"],
    ["a function alone", () => 1, "The payload is a function"],
    ["more than ten megabytes", "x".repeat(MAX_PAYLOAD_BYTES - 1), `is ${MAX_PAYLOAD_BYTES + 1} bytes of JSON`],
    ["more than ten megabytes of wide characters", "ä".repeat(MAX_PAYLOAD_BYTES / 2), "bytes of JSON"],
  ])("%s", (_, value, message) => {
    expect(() => toStorableJson("The payload", value)).toThrow(PayloadInvalid);
    expect(() => toStorableJson("The payload", value)).toThrow(message);
  });
});

test("whatever is accepted comes back equal", () => {
  fc.assert(
    fc.property(fc.anything({ withBigInt: true, withMap: true, withSet: true, withSparseArray: true }), (value) => {
      let json: string;
      try {
        json = toStorableJson("The payload", value);
      } catch (error) {
        expect(error).toBeInstanceOf(PayloadInvalid);
        return;
      }
      // JSON has one zero, and undefined is nothing.
      expect(JSON.parse(json)).toEqual(withoutNegativeZero(value ?? null));
    }),
    { numRuns: 1_000, seed },
  );
});

function withoutNegativeZero(value: unknown): unknown {
  if (value === 0) return 0;
  if (Array.isArray(value)) return value.map(withoutNegativeZero);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, withoutNegativeZero(member)]));
}

describe("cleanText", () => {
  test("makes any text storable, and no longer than asked", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), fc.integer({ min: 2, max: 50 }), (text, most) => {
        const clean = cleanText(text, most);
        expect(clean.length).toBeLessThanOrEqual(most);
        expect(clean.includes("\0")).toBe(false);
        expect(clean.isWellFormed()).toBe(true);
      }),
      { seed },
    );
  });
});

describe("text that came over a wire", () => {
  test.each(['{"n":9007199254740993}', "[1, -9007199254740993]", "12345678901234567891"])(
    "%s holds an integer that would be rounded",
    (json) => {
      expect(() => refuseRoundedIntegers("The body", json)).toThrow("which JavaScript cannot keep exactly");
    },
  );
  test.each(['{"n":9007199254740992}', '"9007199254740993"', '{"9007199254740993":1}', "1e300", "1152921504606846976"])(
    "%s is fine",
    (json) => {
      expect(() => refuseRoundedIntegers("The body", json)).not.toThrow();
    },
  );
});
