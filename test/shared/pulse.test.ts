import { expect, test } from "vitest";
import { makePulses } from "#src/shared/pulse.js";

test("a loop that is not heard of by when it said, and some time after, has stopped; one that ended has not", () => {
  let now = 0;
  const pulses = makePulses(() => now);
  const [claims, chores] = [pulses.register("claim loop"), pulses.register("chores")];
  claims.beat(1_000);
  chores.beat(3_600_000);
  now = 31_000;
  expect(pulses.stopped()).toEqual([]);
  now = 31_001;
  expect(pulses.stopped()).toEqual(["claim loop"]);
  expect(pulses.loops()).toMatchObject([
    { name: "claim loop", silentMs: 31_001, isStopped: true },
    { isStopped: false },
  ]);
  claims.beat(1_000);
  expect(pulses.stopped()).toEqual([]);
  now = 10_000_000;
  claims.end();
  expect(pulses.stopped()).toEqual(["chores"]);
});
