// docs/batch-states.md and src/job/batch.ts draw the same state machines.
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { BATCH_TRANSITIONS, ITEM_TRANSITIONS } from "#src/job/batch.js";

function drawn(section: string): string[] {
  const lines = section.matchAll(/^ {2}([a-z-]+) --> ([a-z-]+) : ([a-z-]+)/gm);
  return [...lines].map(([, from, to, by]) => `${from} ${to} ${by}`).toSorted();
}

const asTexts = (moves: readonly { from: string; to: string; by: string }[]): string[] =>
  moves.map(({ from, to, by }) => `${from} ${to} ${by}`).toSorted();

test("the page draws the moves that the code has, of batches and of items", () => {
  const [batch, item] = readFileSync("docs/batch-states.md", "utf8").split("## Items");
  expect(drawn(batch!)).toEqual(asTexts(BATCH_TRANSITIONS));
  expect(drawn(item!)).toEqual(asTexts(ITEM_TRANSITIONS));
});
