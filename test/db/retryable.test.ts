import { describe, expect, test } from "vitest";
import { endsConnection, isConnectionTrouble, isLockTimeout, isPassing, isRetryable } from "#src/db/retryable.js";
import { DatabaseUnavailable, StateConflict } from "#src/errors.js";

const withCode = (code: string, more: object = {}): Error => Object.assign(new Error("any text"), { code, ...more });

describe("connection trouble", () => {
  test.each([
    "08000",
    "08003",
    "08006",
    "53300",
    "57P01",
    "57P02",
    "57P03",
    "57P05",
    "25P03",
    "ECONNREFUSED",
    "ECONNRESET",
    "EPIPE",
    "ETIMEDOUT",
    "ENOTFOUND",
  ])("%s", (code) => {
    expect(isConnectionTrouble(withCode(code))).toBe(true);
    expect(endsConnection(withCode(code))).toBe(true);
    expect(isRetryable(withCode(code))).toBe(false);
  });

  test.each(["23505", "42P01", "57014", "40001", "55P03", "28P01", "3D000", "08", "ENOENT", "HOLDFAST_CLOSED"])(
    "not %s",
    (code) => expect(isConnectionTrouble(withCode(code))).toBe(false),
  );

  test("a missing unix socket, but not a missing file", () => {
    expect(isConnectionTrouble(withCode("ENOENT", { syscall: "connect" }))).toBe(true);
    expect(isConnectionTrouble(withCode("ENOENT", { syscall: "open" }))).toBe(false);
  });

  test("08P01 of a pooler that hangs up, but not of a statement with the wrong number of values", () => {
    expect(isConnectionTrouble(withCode("08P01", { severity: "FATAL" }))).toBe(true);
    expect(isConnectionTrouble(withCode("08P01", { severity: "ERROR", routine: "exec_bind_message" }))).toBe(false);
  });

  test("the text counts only when there is no code", () => {
    expect(isConnectionTrouble(new Error("Connection terminated unexpectedly"))).toBe(true);
    const said = Object.assign(new Error("Connection terminated unexpectedly"), { code: "P0001" });
    expect(isConnectionTrouble(said)).toBe(false);
    expect(isConnectionTrouble(new Error("the Connection terminated, said the handler"))).toBe(false);
  });

  test("our own errors, and things that are no errors", () => {
    expect(isConnectionTrouble(new DatabaseUnavailable("gone", "wait"))).toBe(true);
    expect(isConnectionTrouble(new StateConflict("no", "no"))).toBe(false);
    for (const nothing of [undefined, null, "ECONNRESET", 57, {}]) expect(isConnectionTrouble(nothing)).toBe(false);
  });
});

test("retryable, and lock timeouts among them", () => {
  for (const code of ["40001", "40P01", "55P03"]) expect(isRetryable(withCode(code))).toBe(true);
  for (const code of ["23505", "57014", "25P02", "40002"]) expect(isRetryable(withCode(code))).toBe(false);
  expect(isLockTimeout(withCode("55P03"))).toBe(true);
  expect(isLockTimeout(withCode("40P01"))).toBe(false);
});

test("what time may help with, and what is refused for what it says", () => {
  for (const code of ["08006", "57P01", "40001", "55P03", "25006", "53100", "57014"]) {
    expect([code, isPassing(withCode(code))]).toEqual([code, true]);
  }
  for (const code of ["23505", "22P02", "42P01", "54000", "P0001", "53200"]) {
    expect([code, isPassing(withCode(code))]).toEqual([code, false]);
  }
});

test("FATAL and a read-only server end the connection without being connection trouble", () => {
  for (const error of [withCode("28P01", { severity: "FATAL" }), withCode("25006")]) {
    expect(endsConnection(error)).toBe(true);
    expect(isConnectionTrouble(error)).toBe(false);
  }
  expect(endsConnection(withCode("23505", { severity: "ERROR" }))).toBe(false);
});
