// Judges kept runs again: `npm run test:faults -- --judge`.
import type { Verdict } from "./judge.ts";
import { judge } from "./judge.ts";
import { readRun } from "./keep.ts";

/** What others than the judge had found stays found. */
export function judgeAgain(path: string): Verdict {
  const { lines, facts, expected, beside } = readRun(path);
  const verdict = judge(lines, facts, expected);
  return { ...verdict, violations: [...beside, ...verdict.violations] };
}
