import { expect, test } from "vitest";
import { isFinal, JOB_STATES, STATUSES_OF, JOB_STATUSES, TRANSITIONS } from "#src/job/states.js";

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

test("every status belongs to one state", () => {
  expect(Object.values(STATUSES_OF).flat().toSorted()).toEqual([...JOB_STATUSES].toSorted());
});
