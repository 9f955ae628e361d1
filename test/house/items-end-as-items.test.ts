// A job that belongs to a batch ends through store/batches only. Every other statement that removes jobs, or makes them dead,
// says that it leaves items alone.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { listFiles, root } from "./sources.ts";

/** Dead jobs only: an item's job is never dead. */
const DEAD_ONLY = ["src/store/janitor/purge.ts", "src/store/jobs/discard.ts"];
/** What ends here was chosen by statements that say it themselves. */
const CHOSEN_BEFORE = ["ended as (\n  delete from :schema.jobs j using decided d"];

/** Pieces of statements that a file has in constants, where they are used. */
function withConstants(code: string): string {
  const texts = new Map([...code.matchAll(/^const (\w+) = "(.*)";$/gm)].map(([, name, text]) => [name, text]));
  return code.replaceAll(/\$\{(\w+)\}/g, (whole, name: string) => texts.get(name) ?? whole);
}

test("statements that end jobs leave the items of batches alone", () => {
  const problems: string[] = [];
  for (const path of listFiles("src/store")) {
    if (path.startsWith("src/store/batches/") || DEAD_ONLY.includes(path)) continue;
    const code = withConstants(readFileSync(join(root, path), "utf8"));
    for (const match of code.matchAll(/delete from :schema\.jobs\b/g)) {
      const around = code.slice(match.index - 20, match.index + 500);
      if (CHOSEN_BEFORE.some((known) => around.includes(known))) continue;
      if (!around.includes("batch_id is null")) problems.push(`${path}: ${around.slice(0, 120)}`);
    }
    for (const match of code.matchAll(/\$\{CONSEQUENCES\}/g)) {
      const before = code.slice(Math.max(0, match.index - 2_500), match.index);
      if (!before.includes("batch_id is null")) problems.push(`${path}: decides about jobs that may be items`);
    }
  }
  expect(problems).toEqual([]);
});
