// A migration by hand installs every routine: each file that makes one is loaded by src/store/routines.ts.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parseSource, readSources, root } from "./sources.ts";

test("src/store/routines.ts loads every file that makes a routine", () => {
  const list = parseSource("src/store/routines.ts", readFileSync(join(root, "src/store/routines.ts"), "utf8"));
  const loaded = new Set(list.imports.map(({ target }) => target));
  const making = readSources("src/store")
    .filter(({ tree, path }) => /= routine\(\{|return routine\(\{/.test(tree.text) && path !== "src/store/sql.ts")
    .map(({ path }) => path);
  expect(making.length).toBeGreaterThan(15);
  expect(making.filter((path) => !loaded.has(path))).toEqual([]);
});
