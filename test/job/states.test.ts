// The state machine of a job; docs/job-states.md draws the same.
import { readFileSync } from "node:fs";
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

test("the page draws the moves that the code has", () => {
  const page = readFileSync("docs/job-states.md", "utf8");
  const lines = [...page.matchAll(/^ {2}(\S+) --> (\S+) : (\w+)/gm)].map(([, from = "", to = "", by = ""]) => ({
    from,
    to,
    by,
  }));
  // It begins with an enqueue and ends with a purge, which are no moves between states. A dead job that is discarded leaves its table, and stays dead.
  const moves = lines.filter(({ by }) => by !== "enqueue" && by !== "purge");
  const asTexts = (all: readonly { from: string; to: string; by: string }[]): string[] =>
    all.map(({ from, to, by }) => `${from} ${to === "[*]" ? from : to} ${by}`).toSorted();
  expect(asTexts(moves)).toEqual(asTexts(TRANSITIONS));
  expect(lines.length - moves.length).toBe(3);
});
