// What the figures of docs/proof.md are added up from, and what is said beside them: a figure that leaves out what went wrong,
// or that counts one thing twice, is worth nothing.
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync, gzipSync } from "node:zlib";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { inReadme, rowsOf, sayRecovery, sayWhose } from "../../scripts/faults/add-up.mjs";
import { distinctSchedules, mutantsOf } from "../../scripts/faults/figures.mjs";
import { countWrong, readJudged } from "../../scripts/faults/results.mjs";
import { beginRun } from "../../scripts/faults/wrong-runs.mjs";
import { goodRun } from "../model/good-run.ts";
import { JUDGE } from "../support/history/judge-version.mjs";
import { keepRun } from "../support/history/keep.ts";
import type { Line } from "../support/history/record.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "holdfast-figures-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const write = (name: string, result: object): void => writeFileSync(join(folder, name), JSON.stringify(result));

describe("storms", () => {
  const storm = async (name: string, run = goodRun(), expected: object = {}): Promise<void> => {
    // What it says of itself is more than there was.
    const said = {
      counts: { jobs: 1_000_000 },
      looked: { I1: 1_000_000 },
      faults: { "kill -9": 1_000 },
      violations: [],
    };
    write(`${name}.json`, { part: "kills", seed: 1, engine: "now", judge: JUDGE, ...said });
    await keepRun(join(folder, `${name}.ndjson.gz`), { ...run, expected, beside: [] });
  };

  test("count for what the judge finds in their raw history, not for what they say of themselves", async () => {
    await storm("kills-1");
    const { current, refused } = await readJudged(folder, "now");
    expect(refused).toEqual([]);
    expect(current).toMatchObject([{ seed: 1, counts: { jobs: goodRun().facts.jobs.length }, violations: [] }]);
    expect(current[0].faults["kill -9"]).toBeLessThan(10);
    expect(current[0].looked.I1).toBeLessThan(1_000);
  });

  test("do not count without a raw history, and that is said", async () => {
    await storm("kills-1");
    await storm("kills-2");
    rmSync(join(folder, "kills-1.ndjson.gz"));
    await storm("kills-3");
    const path = join(folder, "kills-3.ndjson.gz");
    const text = gunzipSync(readFileSync(path)).toString();
    writeFileSync(path, gzipSync(text.slice(0, text.lastIndexOf("{"))));
    const found = await readJudged(folder, "now");
    expect(found.current).toHaveLength(1);
    expect(found.refused).toEqual([
      { name: "kills-1", why: "it has no raw history" },
      { name: "kills-3", why: "it has no facts, or not all of them" },
    ]);
    expect(sayWhose(found, "now")).toMatch(
      /because their raw history is not there or not good: `kills-1`, `kills-3`\.$/,
    );
    expect(inReadme(rowsOf(found, 0)).at(-1)).toMatch(/^\| storms whose raw history .* \| 2 \|$/);
  });

  test("do not count if the judge of today finds something wrong, or misses what every storm has to have today", async () => {
    const lost = goodRun();
    lost.facts.jobs.splice(0, 1);
    await storm("kills-1", lost);
    const without = goodRun();
    without.facts.parcels.splice(0);
    const puts = new Set(without.lines.flatMap((line) => ("verb" in line && line.verb === "put" ? [line.op] : [])));
    const isOfParcel = (line: Line): boolean => "arrived" in line || ("op" in line && puts.has(line.op));
    // Its own expectations did not ask for parcels: there were none then.
    await storm("kills-2", { ...without, lines: without.lines.filter((line) => !isOfParcel(line)) });
    const { current, refused } = await readJudged(folder, "now");
    expect(current).toEqual([]);
    expect(refused).toEqual([
      { name: "kills-1", why: expect.stringMatching(/^I1: job 1 was acknowledged/) as string },
      { name: "kills-2", why: "enough: there was nothing to judge I12 by" },
    ]);
  });
});

describe("runs that ended wrong", () => {
  const about = { part: "poison", seed: 7 };

  test("are there from their first moment, and leave if they were good", () => {
    const run = beginRun(folder, about);
    expect(countWrong(folder)).toBe(1);
    run.forget();
    expect(countWrong(folder)).toBe(0);
  });

  test("leave their name, their date, their engine and what was wrong, though they have no result", () => {
    mkdirSync(join(folder, "none"));
    beginRun(folder, about).endWrong(join(folder, "none"), ["given up after 17:30"]);
    const [name] = readdirSync(join(folder, "wrong"));
    expect(JSON.parse(readFileSync(join(folder, "wrong", name!), "utf8"))).toEqual({
      ...about,
      date: expect.stringMatching(/^\d{4}-/) as string,
      commit: expect.any(String) as string,
      engine: expect.stringMatching(/^[0-9a-f]{10}$/) as string,
      run: expect.stringMatching(/^poison-7-\d{8}T\d{6}$/) as string,
      wrong: ["given up after 17:30"],
    });
  });

  test("are one each, however many files they left, and are said with the figures and in the README", () => {
    mkdirSync(join(folder, "results"));
    write("results/uploads-server-7.json", { part: "uploads-server", seed: 7 });
    write("results/uploads-embedded-7.json", { part: "uploads-embedded", seed: 7 });
    writeFileSync(join(folder, "results", "uploads-embedded-7.ndjson.gz"), "raw");
    writeFileSync(join(folder, "results", "half-7.json"), "{");
    beginRun(folder, { part: "uploads", seed: 7 }).endWrong(join(folder, "results"), ["a test failed"]);
    write("wrong/of-old.json", { part: "uploads-server", seed: 8 });
    expect(readdirSync(join(folder, "wrong"))).toHaveLength(5);
    expect(countWrong(folder)).toBe(2);
    const short = inReadme(rowsOf({ current: [], refused: [] }, countWrong(folder)));
    expect(short.at(-2)).toBe("| **violations** | 0 |");
    expect(short.at(-1)).toMatch(/^\| runs in `results\/wrong` .* \| 2 \|$/);
    expect(existsSync(join(folder, "uploads-server-7.json"))).toBe(false);
  });
});

test("a schedule is counted once, in however many results its seed is, and by its course", () => {
  const of = (seed: number, schedules: number, courses = schedules) => ({
    part: "simulation",
    seed,
    schedules,
    courses,
  });
  expect(distinctSchedules([of(500, 100), of(1_000, 50)])).toBe(150);
  expect(distinctSchedules([of(550, 100), of(500, 100), of(520, 10)])).toBe(150);
  expect(distinctSchedules([of(500, 100, 97), { part: "kills", seed: 501 }])).toBe(97);
});

test("a mutant is killed, alive, or not known of yet; one that is not there any more is none of them", () => {
  const table = {
    part: "mutants",
    killed: [{ name: "a" }, { name: "gone" }],
    alive: ["b"],
    unsure: ["c"],
  };
  expect(mutantsOf([table], ["a", "b", "c", "d"])).toEqual({ killed: ["a"], alive: ["b"], open: ["c", "d"] });
  expect(mutantsOf([], ["a"])).toEqual({ killed: [], alive: [], open: ["a"] });
});

test("how long a killed worker's runs lie about is said of the storms that only kill, from the least to the most", () => {
  const of = (part: string, cut: number, ms: number) => ({
    part,
    recovery: {
      cut,
      claimable: { p50: ms, p99: 2 * ms, most: 3 * ms },
      again: { p50: 1_000, p99: 1_000, most: 1_000 },
    },
  });
  expect(sayRecovery([])).toBe("Not measured yet.");
  expect(sayRecovery([{ part: "kills" }, of("network", 9, 1), of("kills", 0, 0)])).toBe("Not measured yet.");
  expect(sayRecovery([of("kills", 1_500, 1_240), of("kills", 10, 800)]).split("\n")).toEqual([
    "Seconds after the `kill -9`, with a lease of one second; 1,510 runs that were cut off, in 2 storms:",
    "",
    "| until | half of them | 99 of 100 | all |",
    "|---|---:|---:|---:|",
    "| it can be claimed | 0.8 to 1.2 | 1.6 to 2.5 | 2.4 to 3.7 |",
    "| it runs again | 1.0 | 1.0 | 1.0 |",
  ]);
});
