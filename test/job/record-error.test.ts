// Anything can be thrown. Whatever it is, a record of it can be stored, and making the record never throws.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { outcomeOf, recordError } from "#src/job/outcome.js";
import { seedFrom } from "../support/random.ts";

// One for the file: what is tried again is the same run. fast-check names it when something fails.
const seed = seedFrom(process.env["FUZZ_SEED"]);

/** As the store does it: through JSON, without what Postgres cannot keep. */
function storable(thrown: unknown): void {
  const json = JSON.stringify(recordError(thrown));
  expect(json.includes("\\u0000")).toBe(false);
  expect(json.isWellFormed()).toBe(true);
  expect(/\\ud[89a-f]/i.test(json)).toBe(false);
  expect(json.length).toBeLessThan(200_000);
  expect(outcomeOf(thrown).type).toBe("retry");
}

const revoked = (): object => {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  return proxy;
};
const thrower = (): never => {
  throw new Error("no");
};

test.each([
  ["connect to postgres://app:hunter2@db.example/x failed", "connect to postgres://app:***@db.example/x failed"],
  ["https://:hunter2@mirror.example", "https://:***@mirror.example"],
  ["401 for Authorization: Bearer hunter2hunter2.x-y_z=", "401 for Authorization: Bearer ***"],
  ["basic aHVudGVyMjpodW50ZXIy was refused", "basic *** was refused"],
  [
    "GET https://api.telegram.org/bot123456789:AAEhunter2hunter2hunter2hunter2hunter/getFile: 404",
    "GET https://api.telegram.org/bot***/getFile: 404",
  ],
  [`${"x".repeat(4_080)} postgres://app:${"hunter2".repeat(20)}@db`, expect.not.stringContaining("hunter2")],
  [
    "at 12:30:45 user ada@example.com asked http://example.com:8080/a@b",
    expect.stringContaining("ada@example.com asked http://example.com:8080/a@b"),
  ],
])("secrets are not recorded: %s", (text, shown) => {
  const error = new Error(text, { cause: new Error(text) });
  error.stack = `Error: ${text}\n    at somewhere`;
  const record = recordError(error);
  expect(record.message).toEqual(shown);
  expect(record.cause?.message).toEqual(shown);
  expect(record.stack).not.toContain("hunter2");
  expect(recordError(text).message).toEqual(shown);
});

test("scrubbing takes no longer than the text is", () => {
  const began = performance.now();
  for (const piece of ["a.", "a://", "1234567:", "Bearer ", "://:", "a:/"]) recordError(piece.repeat(1_000_000));
  expect(performance.now() - began).toBeLessThan(2_000);
});

describe("thrown values", () => {
  test.each<[string, unknown, string]>([
    ["a string", "plain text", "plain text"],
    ["null", null, "null"],
    ["undefined", undefined, "undefined"],
    ["a number", 7, "7"],
    ["a symbol", Symbol("s"), "Symbol(s)"],
    ["a bigint", 7n, "7"],
    ["a plain object", { status: 500 }, '{"status":500}'],
    ["an object with a message", { message: "from afar" }, "from afar"],
    ["an error", new Error("plain"), "plain"],
  ])("%s is recorded", (_, thrown, message) => {
    expect(recordError(thrown).message).toBe(message);
    storable(thrown);
  });

  test.each<[string, () => unknown]>([
    [
      "getters that throw",
      () => ({
        get message() {
          return thrower();
        },
        get name() {
          return thrower();
        },
      }),
    ],
    [
      "a cause that throws",
      () => ({
        message: "m",
        get cause() {
          return thrower();
        },
      }),
    ],
    ["a stack that throws", () => Object.defineProperty(new Error("m"), "stack", { get: thrower })],
    ["a toString that throws", () => ({ message: { toString: thrower } })],
    ["a toJSON that throws", () => ({ toJSON: thrower })],
    ["a proxy that throws at everything", () => new Proxy({}, { get: thrower, getPrototypeOf: thrower, has: thrower })],
    ["a revoked proxy", revoked],
    ["a function", () => () => 7],
    ["no prototype", () => Object.create(null) as unknown],
    ["a message that is an object", () => ({ message: { deep: 1 } })],
    ["an error with a symbol for a name", () => Object.assign(new Error("m"), { name: Symbol("n") })],
  ])("something with %s is recorded", (_, make) => {
    storable(make());
  });

  test("a cause that leads back to itself ends", () => {
    const first = new Error("first");
    const second = new Error("second", { cause: first });
    first.cause = second;
    storable(first);
    expect(recordError(first)).toMatchObject({ message: "first", cause: { message: "second" } });
  });
});

describe("text that Postgres cannot keep is made to fit", () => {
  test("NUL becomes a replacement character", () => {
    expect(recordError(new Error("a\0b")).message).toBe("a\uFFFDb");
    storable(Object.assign(new Error("x"), { name: "\0", code: "\0", stack: "\0\0" }));
  });
  test("half of a surrogate pair too", () => {
    expect(recordError(new Error("a\uD800b")).message).toBe("a\uFFFDb");
  });
  test("a long text is cut, and not through a character", () => {
    const record = recordError(Object.assign(new Error("😀".repeat(10_000)), { stack: "x".repeat(1_000_000) }));
    expect(record.message.length).toBeLessThanOrEqual(4_096);
    expect(record.message.isWellFormed()).toBe(true);
    expect(record.message.endsWith("…")).toBe(true);
    expect(record.stack?.length).toBeLessThanOrEqual(8_192);
  });
});

test("codes are kept, as text", () => {
  expect(recordError(Object.assign(new Error("m"), { code: "ECONNRESET" })).code).toBe("ECONNRESET");
  expect(recordError(Object.assign(new Error("m"), { code: 404 })).code).toBe("404");
});

test("anything at all can be thrown", () => {
  fc.assert(
    fc.property(fc.anything({ withBigInt: true, withNullPrototype: true, withMap: true, withSet: true }), (thrown) => {
      storable(thrown);
    }),
    { numRuns: 300, seed },
  );
});

test("any text can be in an error", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary", maxLength: 200 }), fc.string({ unit: "binary" }), (message, name) => {
      storable(Object.assign(new Error(message), { name }));
    }),
    { numRuns: 300, seed },
  );
});
