// Judges raw histories again, with the judge as it is now. The judge is TypeScript, and Node 20 does not read that: jiti does.
import { existsSync, readdirSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { createJiti } from "jiti";
import { root } from "../set-up.mjs";

const HISTORY = fileURLToPath(new URL("../../test/support/history/", import.meta.url));
const count = new Intl.NumberFormat("en");

const historiesIn = (folder) =>
  existsSync(folder)
    ? readdirSync(folder)
        .filter((name) => name.endsWith(".ndjson.gz"))
        .map((name) => join(folder, name))
    : [];

let loaded;
function load() {
  const jiti = createJiti(import.meta.url);
  return (loaded ??= Promise.all(["judge.ts", "keep.ts"].map((name) => jiti.import(join(HISTORY, name)))));
}

/**
 * What the judge of today makes of a run that was kept, and which faults it had. What every storm has to have something of is
 * what they have to have today; that its run expected more, or that others than the judge found something wrong, stays so.
 * Throws if it cannot be read.
 */
export async function judgeKept(path) {
  const [{ judge, COVERED_BY_STORMS }, { readRun }] = await load();
  const { lines, facts, expected, beside } = readRun(path);
  const covers = [...new Set([...COVERED_BY_STORMS, ...(expected.covers ?? [])])];
  const { looked, violations, counts } = judge(lines, facts, { ...expected, covers });
  const faults = {};
  for (const { fault } of lines) if (fault !== undefined) faults[fault] = (faults[fault] ?? 0) + 1;
  return { looked, counts, faults, violations: [...beside, ...violations] };
}

/**
 * True: there was something to judge, and nothing was wrong with it.
 * @param {string[]} files
 * @param {{ folder: string, write?: (text: string) => unknown }} input `folder`: whose histories, if no file is named.
 */
export async function judgeFiles(files, { folder, write = (text) => process.stdout.write(text) }) {
  const paths = files.length > 0 ? files.map((file) => resolve(file)) : historiesIn(folder);
  if (paths.length === 0) write(`There is no raw history in ${relative(root, folder)}.\n`);
  let isGood = paths.length > 0;
  for (const path of paths) {
    try {
      const { looked, violations } = await judgeKept(path);
      const parts = Object.entries(looked).map(([invariant, many]) => `${invariant} ${count.format(many)}`);
      write(`${relative(root, path)}: ${violations.length} violations. Looked at: ${parts.join(", ")}\n`);
      for (const violation of violations) write(`  WRONG: ${violation}\n`);
      isGood &&= violations.length === 0;
    } catch (error) {
      write(`${relative(root, path)}: cannot be judged: ${error.message}\n`);
      isGood = false;
    }
  }
  return isGood;
}
