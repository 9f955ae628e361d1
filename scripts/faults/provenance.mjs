// What a result is about: which engine was tried, at which commit, and when.
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { JUDGE } from "../../test/support/history/judge-version.mjs";

const ROOT = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

/** What no storm goes through. */
const NOT_ENGINE = ["src/cli", "src/http", "src/testing", "src/guarded-fetch"];

function filesIn(root, folder) {
  if (!existsSync(join(root, folder))) return [];
  return readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .map((name) => join(root, folder, name))
    .filter((path) => statSync(path).isFile())
    .map((path) => relative(root, path).split(sep).join("/"));
}

const sourcesIn = (root) =>
  [...filesIn(root, "src"), ...filesIn(root, "migrations")].filter(
    (path) => !NOT_ENGINE.some((folder) => path.startsWith(`${folder}/`)),
  );

/** A fingerprint of the sources that decide what becomes of jobs: it is another one when any of them is. */
export function engineOf(root = ROOT) {
  const hash = createHash("sha256");
  for (const path of sourcesIn(root).toSorted((a, b) => (a < b ? -1 : 1))) {
    hash
      .update(`${path}\0`)
      .update(readFileSync(join(root, path)))
      .update("\0");
  }
  return hash.digest("hex").slice(0, 10);
}

/** `+`: with changes that were not committed, those of the results apart. */
export function commitOf(root = ROOT) {
  const git = (...args) => spawnSync("git", args, { cwd: root, encoding: "utf8" });
  const head = git("rev-parse", "--short", "HEAD");
  if (head.status !== 0) return "unknown";
  const { stdout } = git("status", "--porcelain", "--", ".", ":(exclude)test/crash/results");
  return `${head.stdout.trim()}${stdout.trim() === "" ? "" : "+"}`;
}

/** What runs is `dist`: nobody knows which engine that is, if a source has become newer since it was built. */
export function isBuilt(root = ROOT) {
  const stamp = join(root, "dist", ".built");
  if (!existsSync(stamp)) return false;
  const { mtimeMs } = statSync(stamp);
  return sourcesIn(root).every((path) => statSync(join(root, path)).mtimeMs <= mtimeMs);
}

/** What a result says of itself. Without a build of these very sources there can be none. */
export function provenance() {
  if (!isBuilt()) {
    throw new Error("dist is older than src: nobody knows which engine was tried. Run `npm run build`, and try again.");
  }
  return { date: new Date().toISOString(), commit: commitOf(), engine: engineOf(), judge: JUDGE };
}

/** Mutants are not judged: what found them is a test. */
export const isCurrent = (result, engine) =>
  result.engine === engine && (result.judge === JUDGE || result.part === "mutants");
