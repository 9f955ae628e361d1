// What the page says and does with texts, without a page: the badge's words, and JSON with every digit.
import { describe, expect, test } from "vitest";
import { type BadgeJob, wordsOf } from "../../dashboard/src/badge-words.ts";
import { isSecret, maskedPaths, parseJson, prettyJson } from "../../dashboard/src/json-text.ts";

const NOW = Date.parse("2026-11-18T12:00:00Z");
const at = (seconds: number): string => new Date(NOW + seconds * 1_000).toISOString();

const job = (more: Partial<BadgeJob>): BadgeJob => ({
  status: "ready",
  attempt: 0,
  maxAttempts: 5,
  runAt: at(0),
  startedAt: null,
  progress: null,
  lastError: null,
  finishedAt: null,
  leaseExpiresAt: null,
  ...more,
});
const progress = (done: number, total: number | null) => ({ done, total, note: null, at: at(0) });

test.each<[string, Partial<BadgeJob>]>([
  ["scheduled in 4m", { status: "scheduled", runAt: at(4 * 60 + 30) }],
  ["ready 12s", { status: "ready", runAt: at(-12) }],
  // Clocks that differ by a little make nothing negative.
  ["ready 0s", { status: "ready", runAt: at(3) }],
  [
    "running 3m 12s · 41 %",
    { status: "running", attempt: 1, startedAt: at(-192), runAt: at(-500), progress: progress(61, 148) },
  ],
  ["running 3m 12s · 99 %", { status: "running", startedAt: at(-192), progress: progress(999, 1_000) }],
  ["running 1h 2m", { status: "running", attempt: 1, startedAt: at(-3_720), progress: progress(61, null) }],
  ["retrying (1 try)", { status: "retrying", attempt: 1 }],
  ["retrying (3 tries)", { status: "retrying", attempt: 3 }],
  ["stuck", { status: "stuck", attempt: 1, leaseExpiresAt: at(-20) }],
  ["paused", { status: "paused" }],
  ["done", { status: "done", attempt: 1 }],
  ["done after 3 tries", { status: "done", attempt: 3 }],
  ["dead after 1 try", { status: "dead", attempt: 1 }],
  ["dead after 5 tries", { status: "dead", attempt: 5 }],
  ["cancelled", { status: "cancelled" }],
])("%s", (words, more) => {
  expect(wordsOf(job(more), NOW)).toBe(words);
});

describe("JSON", () => {
  const text = '{"id":9007199254740993,"list":[1.50,-0,{"a\\"b":"x"}],"none":{},"e":1e400,"customer":{"email":"***"}}';

  test("is written on lines with every digit, and means the same", () => {
    const pretty = prettyJson(text);
    expect(pretty).toContain(
      '{\n  "id": 9007199254740993,\n  "list": [\n    1.50,\n    -0,\n    {\n      "a\\"b": "x"',
    );
    expect(pretty).toContain('"none": {},\n  "e": 1e400');
    expect(JSON.parse(pretty)).toEqual(JSON.parse(text));
  });

  test("says where something is masked, and what would be a secret", () => {
    expect(maskedPaths(text)).toEqual(["customer.email"]);
    const of = (json: string): boolean => isSecret("apiToken", parseJson(json));
    expect([of('"tok_live"'), of("7"), of('{"a":1}')]).toEqual([true, true, true]);
    // Nothing to cover: no value, a flag, or covered by the server.
    expect([of("null"), of("true"), of('"***"')]).toEqual([false, false, false]);
    expect(isSecret("order", parseJson("7"))).toBe(false);
  });
});
