import { describe, expect, test } from "vitest";
import { OptionInvalid } from "#src/errors.js";
import { durationMs, formatDuration, retentionMs } from "#src/shared/duration.js";

const refused = (value: unknown): OptionInvalid => {
  try {
    durationMs("lease", value);
  } catch (error) {
    if (error instanceof OptionInvalid) return error;
    throw error;
  }
  throw new Error(`${String(value)} was taken for a duration.`);
};

test.each([
  ["0s", 0],
  ["250ms", 250],
  ["30s", 30_000],
  ["5m", 300_000],
  ["1h", 3_600_000],
  ["7d", 604_800_000],
  ["1.5s", 1_500],
  ["0.4ms", 0],
  [" 2m ", 120_000],
])("%j is %i milliseconds", (text, ms) => {
  expect(durationMs("lease", text)).toBe(ms);
});

test("a bare number is refused, and the message offers both readings", () => {
  const error = refused(30);
  expect(error.message).toBe("lease is 30, which is not a duration.");
  expect(error.hint).toBe('A bare number is ambiguous: write "30s" or "30ms".');
  expect(refused(0).hint).toContain('"0s"');
});

test.each([
  ["-5s"],
  ["5"],
  ["5 minutes"],
  [""],
  ["s"],
  ["1e3s"],
  ["Infinitys"],
  ["5S"],
  [null],
  [undefined],
  [NaN],
  [{}],
])("%j is refused", (value) => {
  expect(refused(value).code).toBe("HOLDFAST_OPTION_INVALID");
});

test("what would not fit a timestamp is refused", () => {
  expect(durationMs("delay", "36500d")).toBe(36_500 * 86_400_000);
  expect(refused("36501d").message).toContain("longer than 100 years");
});

describe("a retention", () => {
  test("may be forever, which is not a duration", () => {
    expect(retentionMs("keepDone", "forever")).toBeNull();
    expect(refused("forever").message).toContain('"forever"');
  });

  test("of 0s is at once, and never means the default", () => {
    expect(retentionMs("keepDone", "0s")).toBe(0);
  });

  test("of a bare 0, or a negative one, is refused", () => {
    expect(() => retentionMs("keepDone", 0)).toThrow("keepDone is 0");
    expect(() => retentionMs("keepDone", "-1h")).toThrow('keepDone is "-1h"');
  });
});

test.each([
  [5, "5ms"],
  [90_000, "1m 30s"],
  [3_600_000, "1h"],
  [90_061_000, "1d 1h"],
])("%i milliseconds are written as %j", (ms, text) => {
  expect(formatDuration(ms)).toBe(text);
});
