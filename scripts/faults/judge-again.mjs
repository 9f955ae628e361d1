// Judges raw histories again, with the judge as it is now. The judge is TypeScript, and Node 20 does not read that: jiti does.
import { existsSync, readdirSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { createJiti } from "jiti";
import { root } from "../set-up.mjs";

const JUDGE = fileURLToPath(new URL("../../test/support/history/judge-again.ts", import.meta.url));
const count = new Intl.NumberFormat("en");

const historiesIn = (folder) =>
  existsSync(folder)
    ? readdirSync(folder)
        .filter((name) => name.endsWith(".ndjson.gz"))
        .map((name) => join(folder, name))
    : [];

/**
 * True: there was something to judge, and nothing was wrong with it.
 * @param {string[]} files
 * @param {{ folder: string, write?: (text: string) => unknown }} input `folder`: whose histories, if no file is named.
 */
export async function judgeFiles(files, { folder, write = (text) => process.stdout.write(text) }) {
  const { judgeAgain } = await createJiti(import.meta.url).import(JUDGE);
  const paths = files.length > 0 ? files.map((file) => resolve(file)) : historiesIn(folder);
  if (paths.length === 0) write(`There is no raw history in ${relative(root, folder)}.\n`);
  let isGood = paths.length > 0;
  for (const path of paths) {
    try {
      const { looked, violations } = judgeAgain(path);
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
