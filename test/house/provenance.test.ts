// A result counts for the engine that it tried and for the judge that judged it, and for no other.
import { mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { sayWhose } from "../../scripts/faults/add-up.mjs";
import { engineOf, isBuilt, provenance } from "../../scripts/faults/provenance.mjs";
import { readResults } from "../../scripts/faults/results.mjs";
import { JUDGE } from "../support/history/judge-version.mjs";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "holdfast-provenance-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function write(path: string, text: string): void {
  mkdirSync(join(folder, path, ".."), { recursive: true });
  writeFileSync(join(folder, path), text);
}

test("the engine is another one when a source or a migration is, and the same when anything else is", () => {
  write("src/worker/run.ts", "1");
  write("src/http/serve.ts", "1");
  write("migrations/001.sql", "1");
  const first = engineOf(folder);
  write("src/http/serve.ts", "2");
  write("docs/page.md", "2");
  expect(engineOf(folder)).toBe(first);
  write("migrations/001.sql", "2");
  const second = engineOf(folder);
  expect(second).not.toBe(first);
  write("src/worker/run.ts", "2");
  expect(engineOf(folder)).not.toBe(second);
});

test("a result says when it was, and of what", () => {
  expect(provenance()).toEqual({
    date: expect.stringMatching(/^\d{4}-\d\d-\d\dT/) as string,
    commit: expect.stringMatching(/^([0-9a-f]{7,}\+?|unknown)$/) as string,
    engine: engineOf(),
    judge: JUDGE,
  });
});

test("what runs is the build: one that is older than a source is none of that engine", () => {
  const at = (path: string, second: number): void => utimesSync(join(folder, path), second, second);
  write("src/worker/run.ts", "1");
  write("src/http/serve.ts", "1");
  expect(isBuilt(folder)).toBe(false);
  write("dist/.built", "");
  at("src/worker/run.ts", 100);
  at("dist/.built", 200);
  expect(isBuilt(folder)).toBe(true);
  at("src/http/serve.ts", 300);
  expect(isBuilt(folder)).toBe(true);
  at("src/worker/run.ts", 300);
  expect(isBuilt(folder)).toBe(false);
});

test("only results of this engine and this judge count, mutants of this engine whoever judges; others are said to be there", () => {
  const result = (more: object): string => JSON.stringify({ part: "kills", seed: 1, ...more });
  write("a.json", result({ engine: "now", judge: JUDGE, date: "2026-11-18T01:00:00Z" }));
  write("b.json", result({ engine: "now", judge: JUDGE, date: "2026-11-20T01:00:00Z" }));
  write("c.json", result({ engine: "before", judge: JUDGE, date: "2026-11-17T01:00:00Z" }));
  write("d.json", result({ engine: "now", judge: JUDGE - 1 }));
  write("e.json", result({}));
  write("mutants.json", JSON.stringify({ part: "mutants", seed: 1, engine: "now" }));
  write("mutants-before.json", JSON.stringify({ part: "mutants", seed: 1, engine: "before" }));
  write("earlier/f.json", result({}));
  const found = readResults(folder, "now");
  expect(found.current).toHaveLength(3);
  expect(sayWhose(found, "now")).toBe(
    "Runs of 2026-11-18 to 2026-11-20, 2 of them, of the engine `now`. 5 of earlier engines, or by an earlier judge, are kept and not counted.",
  );
  expect(sayWhose({ current: [], earlier: 0 }, "now")).toBe("No runs yet of the engine `now`.");
});
