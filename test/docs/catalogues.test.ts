// Tables of pages that repeat what the code, or another page, has: they are equal.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openTest } from "#src/testing/index.js";
import { createDatabase } from "../support/database.ts";
import { root } from "./pages.ts";

const read = (path: string): string => readFileSync(join(root, path), "utf8");
const between = (text: string, start: string, end: string): string =>
  text.slice(text.indexOf(start) + start.length, text.indexOf(end));

test("docs/janitor.md has every chore", async () => {
  const section = between(read("docs/janitor.md"), "## What it does by itself", "## What it promises");
  const documented = [...section.matchAll(/^\| (`[^|]+) \|/gm)].flatMap(([, names]) =>
    [...names!.matchAll(/`([a-z-]+)`/g)].map((match) => match[1]!),
  );
  const database = await createDatabase();
  const hf = await openTest({ database: database.url, queues: { any: { keepDead: "1d" } } });
  try {
    expect(documented.toSorted()).toEqual(hf.janitor.chores.map(({ name }) => name).toSorted());
  } finally {
    await hf.close();
    await database.drop();
  }
});

test("README.md has the figures of docs/proof.md", () => {
  const figuresOf = (path: string): string[] =>
    between(read(path), "<!-- figures -->", "<!-- /figures -->").trim().split("\n");
  const all = figuresOf("docs/proof.md");
  const shown = figuresOf("README.md");
  expect(shown.length).toBeGreaterThan(5);
  expect(shown.filter((row) => !all.includes(row))).toEqual([]);
  expect(shown).toContain("| **violations** | 0 |");
  // What is not added up is said with what is.
  expect(shown.at(-1)).toMatch(/^\| runs in `results\/wrong`.* \d+ \|$/);
});
