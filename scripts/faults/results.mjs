// The result files: those that count, and those that are kept beside them and do not. A storm counts for what the judge of
// today finds in its raw history, and not for what its result says of itself.
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { basename, join } from "node:path";
import { judgeKept } from "./judge-again.mjs";
import { EXTRA, PLAN } from "./plan.mjs";
import { engineOf, isCurrent } from "./provenance.mjs";

const STORMS = new Set([...PLAN, ...EXTRA].filter(({ isStorm }) => isStorm).map(({ name }) => name));

function readAll(folder) {
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .filter((name) => name.endsWith(".json"))
    .map((name) => ({ path: join(folder, name), ...JSON.parse(readFileSync(join(folder, name), "utf8")) }));
}

/** Those that may count, and how many are kept beside them that do not: of earlier engines, or judged less strictly. */
export function readResults(folder, engine = engineOf()) {
  const all = readAll(folder);
  const current = all.filter((result) => isCurrent(result, engine));
  return { current, earlier: all.length - current.length + readAll(join(folder, "earlier")).length };
}

/** Verdicts of this process: whoever runs until the figures are reached asks again after each run. */
const known = new Map();

async function judgeOnce(path) {
  if (!existsSync(path)) throw new Error("it has no raw history");
  const { mtimeMs, size } = statSync(path);
  const key = `${path} ${mtimeMs} ${size}`;
  if (!known.has(key)) known.set(key, await judgeKept(path));
  return known.get(key);
}

/** Those that count, as they are judged now. `refused`: storms that cannot be judged, or are found wrong, and why. */
export async function readJudged(folder, engine = engineOf()) {
  const { current: found, earlier } = readResults(folder, engine);
  const current = [];
  const refused = [];
  for (const result of found) {
    if (!STORMS.has(result.part)) {
      current.push(result);
      continue;
    }
    try {
      const verdict = await judgeOnce(result.path.replace(/\.json$/, ".ndjson.gz"));
      if (verdict.violations.length > 0) throw new Error(verdict.violations[0]);
      current.push({ ...result, ...verdict });
    } catch (error) {
      refused.push({ name: basename(result.path, ".json"), why: error.message });
    }
  }
  return { current, earlier, refused };
}

/** How many runs ended wrong, or did not end. Each may have left several files, which say whose they are. */
export const countWrong = (folder) => new Set(readAll(join(folder, "wrong")).map(({ run, path }) => run ?? path)).size;
