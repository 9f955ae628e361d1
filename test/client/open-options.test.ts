import { expect, test } from "vitest";
import { type OpenOptions, resolveOpenOptions } from "#src/options.js";

test.each<[unknown, string, string]>([
  [{ databse: "x" }, 'open() has the unknown option "databse".', 'Did you mean "database"?'],
  [{ url: "postgres://x" }, 'open() has the unknown option "url".', "Known options: database"],
  [{ database: "mysql://x" }, "open().database is not a database URL.", "postgres://user:password@host:5432/name"],
  [{ database: 7 }, "open().database is not a database URL.", "memory:"],
  [{ poolSize: 1 }, "open().poolSize is 1.", "2 to 1000"],
  [{ poolSize: "10" }, "open().poolSize is 10.", "2 to 1000"],
  [{ callTimeout: 10 }, "open().callTimeout is 10, which is not a duration.", '"10s" or "10ms"'],
  [{ callTimeout: "50ms" }, "open().callTimeout is 50 ms.", '"100ms"'],
  [{ keepEnded: 0 }, "open().keepEnded is 0, which is not a duration.", "ambiguous"],
  [{ keepEnded: "-1h" }, 'open().keepEnded is "-1h", which is not a duration.', "number and a unit"],
  [{ migrate: "yes" }, "open().migrate is yes.", "true or false"],
])("%j is refused", (options, message, hint) => {
  expect.assertions(2);
  try {
    resolveOpenOptions(options as OpenOptions);
  } catch (error) {
    expect(error).toMatchObject({ code: "HOLDFAST_OPTION_INVALID", message });
    expect(error).toMatchObject({ hint: expect.stringContaining(hint) });
  }
});

test("a password in a wrong URL does not get into the message", () => {
  expect(() => resolveOpenOptions({ database: "mysql://me:secret@host/db" })).toThrow(
    expect.objectContaining({ message: expect.not.stringContaining("secret") }),
  );
});

test.each([
  [{}, { tier: "embedded", folder: "./.holdfast" }],
  [{ database: undefined }, { tier: "embedded", folder: "./.holdfast" }],
  [{ data: "./elsewhere" }, { tier: "embedded", folder: "./elsewhere" }],
  [{ database: "embedded:./there" }, { tier: "embedded", folder: "./there" }],
  [{ database: "memory:" }, { tier: "memory" }],
  [{ database: "postgres://h/d" }, { tier: "server", url: "postgres://h/d" }],
  [{ database: "postgresql://h/d" }, { tier: "server", url: "postgresql://h/d" }],
] as const)("%j opens %j", (options, place) => {
  expect(resolveOpenOptions(options).place).toEqual(place);
});

test("retentions: unset is a week, 0s is at once, forever is never", () => {
  expect(resolveOpenOptions({}).keepEndedMs).toBe(168 * 3_600_000);
  expect(resolveOpenOptions({ keepEnded: "0s" }).keepEndedMs).toBe(0);
  expect(resolveOpenOptions({ keepEnded: "forever" }).keepEndedMs).toBeNull();
});
