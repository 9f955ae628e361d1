// The import rules of the house, held over src/. ARCHITECTURE.md draws the levels; rules.ts says each rule in code.
import { expect, test } from "vitest";
import {
  bucketNames,
  driverImports,
  importCycles,
  indexImports,
  processOutsideCli,
  roomsWithoutLevel,
  spansByTimeOfDay,
  sqlOutsideStore,
  upwardImports,
} from "./rules.ts";
import { readSources } from "./sources.ts";

const sources = readSources();

function hold(problems: string[]): void {
  expect(problems, `\n${problems.join("\n")}\n`).toEqual([]);
}

test("there are sources to look at, and their imports are seen", () => {
  expect(sources.map((source) => source.path)).toContain("src/errors.ts");
  const duration = sources.find((source) => source.path === "src/shared/duration.ts");
  expect(duration?.imports.map((found) => found.target)).toContain("src/errors.ts");
});

test("every room has a level", () => hold(roomsWithoutLevel(sources)));

test("imports go down a level or stay in their room", () => hold(upwardImports(sources)));

test("no imports go round in a circle at run time", () => hold(importCycles(sources, { types: false })));

test("no imports go round in a circle, types included", () => hold(importCycles(sources, { types: true })));

test("nobody imports src/index.ts", () => hold(indexImports(sources)));

test("only db/ knows pg and PGlite", () => hold(driverImports(sources)));

test("SQL lives in store/ and migrate/, and db/ has only statements about its session", () =>
  hold(sqlOutsideStore(sources)));

test("only cli/ reads the environment, handles signals, prints and exits", () => hold(processOutsideCli(sources)));

test("no span of time is measured by a clock that can be set", () => hold(spansByTimeOfDay(sources)));

test("no file or folder is a bucket", () => hold(bucketNames(sources)));
