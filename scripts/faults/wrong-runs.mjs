// Runs that ended wrong, in the folder `wrong` of the results. They are not added up, and how many there are is said with the
// figures. A run is there from its first moment on, and leaves when it was good or was stopped by whoever ran it: one that is ended
// from outside, with the machine or with whoever waited for it, has not passed either.
import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { commitOf, engineOf } from "./provenance.mjs";

const save = (path, result) => writeFileSync(path, `${JSON.stringify(result, null, 1)}\n`);

export function read(path) {
  try {
    return JSON.parse(readFileSync(path, "utf8"));
  } catch {
    return undefined;
  }
}

/**
 * @param {string} out the folder of results
 * @param {{ part: string, seed: number }} what
 */
export function beginRun(out, { part, seed }) {
  const folder = join(out, "wrong");
  const date = new Date().toISOString();
  // One that is repeated from its seed is another run.
  const time = date.slice(0, 19).replaceAll(/[-:]/g, "");
  const run = `${part}-${seed}-${time}`;
  const path = join(folder, `${run}.json`);
  const about = { part, seed, date, commit: commitOf(), engine: engineOf(), run };
  mkdirSync(folder, { recursive: true });
  save(path, { ...about, wrong: ["it was begun, and did not end"] });
  return {
    forget: () => rmSync(path, { force: true }),
    /** With what it left in that folder; each result says whose it is. */
    endWrong(results, wrong) {
      save(path, { ...about, wrong });
      for (const name of readdirSync(results)) {
        const [, stem, ending] = /^([^.]+)(\..+)$/.exec(name);
        const target = join(folder, `${stem}-${time}${ending}`);
        if (ending !== ".json") {
          copyFileSync(join(results, name), target);
          continue;
        }
        // One that was being written when its process was ended is none.
        const found = read(join(results, name));
        if (found !== undefined) save(target, { ...found, run, wrong });
      }
    },
  };
}
