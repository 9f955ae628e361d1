import { describe, expect, test } from "vitest";
import { DEFAULT_BACKOFF, makeRetryPolicy } from "#src/job/retry-policy.js";

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

describe("the ladder 30s, 2m, 10m, 1h", () => {
  const policy = makeRetryPolicy("backoff", DEFAULT_BACKOFF);
  test.each([
    [0, 30 * SECOND],
    [1, 30 * SECOND],
    [2, 2 * MINUTE],
    [3, 10 * MINUTE],
    [4, HOUR],
    [5, HOUR],
    [99, HOUR],
  ])("waits after attempt %i for %i ms", (attempt, ms) => {
    expect(policy.delayMs(attempt)).toBe(ms);
  });
});

describe("exponential without jitter", () => {
  test.each([
    [{ base: "1s", jitter: 0 }, [1, 2, 4, 8, 16]],
    [{ base: "5s", factor: 3, jitter: 0 }, [5, 15, 45, 135, 405]],
    [{ base: "10s", factor: 1, jitter: 0 }, [10, 10, 10, 10, 10]],
    [{ base: "10s", cap: "35s", jitter: 0 }, [10, 20, 35, 35, 35]],
    [{ base: "0s", jitter: 0 }, [0, 0, 0, 0, 0]],
  ] as const)("%j waits %j seconds", (backoff, seconds) => {
    const policy = makeRetryPolicy("backoff", backoff);
    expect([1, 2, 3, 4, 5].map((attempt) => policy.delayMs(attempt) / SECOND)).toEqual(seconds);
  });

  test("stays at the cap however many attempts there were", () => {
    expect(makeRetryPolicy("backoff", { base: "1s", factor: 100, cap: "1h", jitter: 0 }).delayMs(1_000)).toBe(HOUR);
  });
});

test("jitter moves a delay by at most its share, both ways", () => {
  const policy = makeRetryPolicy("backoff", { base: "100s", jitter: 0.2 });
  expect(policy.delayMs(1, () => 0)).toBe(80 * SECOND);
  expect(policy.delayMs(1, () => 0.5)).toBe(100 * SECOND);
  expect(policy.delayMs(1, () => 1)).toBe(120 * SECOND);
  for (let n = 0; n < 100; n += 1) {
    expect(policy.delayMs(1)).toBeGreaterThanOrEqual(80 * SECOND);
    expect(policy.delayMs(1)).toBeLessThanOrEqual(120 * SECOND);
  }
});

test.each([
  [[], "backoff is an empty ladder."],
  [["30s", 30], "backoff[1] is 30, which is not a duration."],
  [["-1s"], 'backoff[0] is "-1s", which is not a duration.'],
  [{ base: 5 }, "backoff.base is 5, which is not a duration."],
  [{}, "backoff.base is undefined, which is not a duration."],
  [{ base: "1s", factor: 0.5 }, "backoff.factor is 0.5."],
  [{ base: "1s", factor: NaN }, "backoff.factor is NaN."],
  [{ base: "1s", jitter: 2 }, "backoff.jitter is 2."],
  [{ base: "1s", jitter: -0.1 }, "backoff.jitter is -0.1."],
  ["30s", 'backoff is "30s".'],
  [null, "backoff is null."],
])("%j is refused: %s", (backoff, message) => {
  // @ts-expect-error none of them is a Backoff
  expect(() => makeRetryPolicy("backoff", backoff)).toThrow(message);
});

test("an option of the exponential form that does not exist is refused", () => {
  // @ts-expect-error max is called cap
  expect(() => makeRetryPolicy("backoff", { base: "1s", max: "1h" })).toThrow('unknown option "max"');
});
