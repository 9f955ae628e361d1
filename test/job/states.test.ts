import { expect, test } from "vitest";
import { isFinal, JOB_STATES, statusOf, TRANSITIONS } from "#src/job/states.js";

test("every state can be reached, and every open one can be left", () => {
  const reached = new Set<string>(["pending", ...TRANSITIONS.map(({ to }) => to)]);
  expect([...reached].toSorted()).toEqual([...JOB_STATES].toSorted());
  for (const state of JOB_STATES.filter((each) => !isFinal(each))) {
    expect(TRANSITIONS.some(({ from }) => from === state)).toBe(true);
  }
});

test("done and cancelled are never left", () => {
  expect(TRANSITIONS.filter(({ from }) => ["done", "cancelled"].includes(from))).toEqual([]);
});

const now = new Date("2030-01-01T00:00:00Z");
const later = new Date(now.getTime() + 1);

test.each([
  [{ state: "pending", attempt: 0, runAt: now }, "ready"],
  [{ state: "pending", attempt: 0, runAt: later }, "scheduled"],
  [{ state: "pending", attempt: 2, runAt: later }, "retrying"],
  [{ state: "pending", attempt: 2, runAt: now }, "retrying"],
  [{ state: "running", attempt: 1, runAt: now }, "running"],
  [{ state: "dead", attempt: 5, runAt: now }, "dead"],
] as const)("%j is shown as %s", (job, status) => {
  expect(statusOf(job, now)).toBe(status);
});
