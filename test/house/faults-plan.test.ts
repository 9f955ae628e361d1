// `npm run test:faults` runs everything that is made for it: a file or a storm that is not in its plan would never be run,
// and nobody would miss it.
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { PLAN } from "../../scripts/faults/plan.mjs";
import { PARTS } from "../crash/storm/parts.ts";
import { root } from "./sources.ts";

test("every *.faults.ts is in the plan", () => {
  const planned = PLAN.flatMap(({ files }) => files);
  const found = readdirSync(join(root, "test"), { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".faults.ts"))
    .map((file) => `test/${file}`);
  expect(found.length).toBeGreaterThan(5);
  expect(found.filter((file) => !planned.includes(file))).toEqual([]);
});

test("every storm is in the plan once, under its name", () => {
  const storms = Object.keys(PARTS).filter((name) => PARTS[name]!.isExtra !== true);
  expect(PLAN.filter(({ isStorm }) => isStorm).map(({ name }) => name)).toEqual(storms);
});

test("every storm says which faults it is about, and at its own length that is one at least", () => {
  for (const { name, seconds } of PLAN.filter(({ isStorm }) => isStorm)) {
    const part = PARTS[name]!;
    expect(seconds, name).toBeGreaterThan(part.seconds);
    const least = Object.values(part.perMinute).map((count) => Math.floor((count * part.seconds) / 60));
    expect(Math.max(...least), name).toBeGreaterThan(0);
  }
});
