import { describe, expect, test } from "vitest";
import { Fatal, Gone, outcomeOf, RetryAfter, Snooze } from "#src/job/outcome.js";

test("an ordinary error is retried on the kind's ladder", () => {
  const outcome = outcomeOf(new TypeError("no"));
  expect(outcome).toMatchObject({ type: "retry", error: { name: "TypeError", message: "no" } });
  expect(outcome).not.toHaveProperty("delayMs");
});

const wrap = (cause: unknown, times: number): unknown =>
  times === 0 ? cause : wrap(new Error("while doing something else", { cause }), times - 1);

describe.each([0, 1, 3])("wrapped %i times", (times) => {
  test("Fatal is dead at once", () => {
    expect(outcomeOf(wrap(new Fatal("bad"), times))).toMatchObject({ type: "dead", error: { reason: "fatal" } });
  });
  test("Gone is done, with nothing to do", () => {
    expect(outcomeOf(wrap(new Gone("deleted"), times))).toMatchObject({ type: "gone" });
  });
  test("RetryAfter waits as long as it says", () => {
    expect(outcomeOf(wrap(new RetryAfter("5m"), times))).toMatchObject({ type: "retry", delayMs: 300_000 });
  });
  test("Snooze waits as long as it says, and is no failure", () => {
    expect(outcomeOf(wrap(new Snooze("5m"), times))).toEqual({ type: "snooze", delayMs: 300_000 });
  });
});

test("subclasses mean the same", () => {
  class NoSuchUser extends Fatal {}
  expect(outcomeOf(new NoSuchUser("7"))).toMatchObject({ type: "dead" });
});

test("the outermost instruction wins", () => {
  expect(outcomeOf(new Fatal("giving up", { cause: new RetryAfter("5m") }))).toMatchObject({ type: "dead" });
});

test("what is wrapped keeps its record", () => {
  expect(outcomeOf(wrap(new Fatal("bad"), 1))).toMatchObject({
    error: { message: "while doing something else", cause: { name: "Fatal", message: "bad" } },
  });
});

test("a delay is a duration, and a wrong one is an error where it is written", () => {
  // @ts-expect-error a bare number is no duration
  expect(() => new RetryAfter(5)).toThrow("RetryAfter is 5");
  expect(() => new Snooze("-5s")).toThrow("Snooze");
});
