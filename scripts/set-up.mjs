// What `npm start`, `npm test` and `npm run build` share: install from the lock file if packages are missing, build if
// the sources are newer than what was built. Quiet when there is nothing to do.
import { spawnSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

export const root = dirname(dirname(fileURLToPath(import.meta.url)));

function run(command, args) {
  const result = spawnSync(command, args, { cwd: root, stdio: "inherit", shell: process.platform === "win32" });
  if (result.status !== 0) {
    process.stderr.write(
      `\n"${command} ${args.join(" ")}" failed. Fix what it says above and run the command again.\n`,
    );
    process.exit(result.status ?? 1);
  }
}

function newest(folder) {
  let latest = 0;
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    latest = Math.max(latest, entry.isDirectory() ? newest(path) : statSync(path).mtimeMs);
  }
  return latest;
}

export function install() {
  const lock = join(root, "package-lock.json");
  const installed = join(root, "node_modules", ".package-lock.json");
  if (existsSync(installed) && statSync(installed).mtimeMs >= statSync(lock).mtimeMs) return;
  // A lock file that only became newer through `git checkout` does not mean other packages.
  if (existsSync(installed) && sameVersions(lock, installed)) return;
  process.stderr.write("Installing packages (once) ...\n");
  run("npm", ["ci", "--no-fund", "--no-audit", "--loglevel=error"]);
}

function sameVersions(lock, installed) {
  const wanted = JSON.parse(readFileSync(lock, "utf8")).packages;
  const have = JSON.parse(readFileSync(installed, "utf8")).packages;
  return Object.entries(wanted).every(
    ([path, entry]) => path === "" || entry.optional === true || have[path]?.version === entry.version,
  );
}

export function build({ force = false } = {}) {
  const stamp = join(root, "dist", ".built");
  const sources = Math.max(
    newest(join(root, "src")),
    newest(join(root, "migrations")),
    newest(join(root, "dashboard")),
    statSync(join(root, "tsconfig.build.json")).mtimeMs,
  );
  if (!force && existsSync(stamp) && statSync(stamp).mtimeMs >= sources) return linkCommand();
  process.stderr.write("Building ...\n");
  run(process.execPath, ["scripts/build-migrations.mjs"]);
  // Files whose source is gone must not stay importable.
  if (force) rmSync(join(root, "dist"), { recursive: true, force: true });
  run(process.execPath, [join("node_modules", "typescript", "bin", "tsc"), "-p", "tsconfig.build.json"]);
  // What `npx holdfast` runs. The compiler makes it anew, without the right to be run.
  chmodSync(join(root, "dist", "cli", "main.js"), 0o755);
  run(process.execPath, [join("node_modules", "typescript", "bin", "tsc"), "-p", join("dashboard", "widget")]);
  run(process.execPath, ["scripts/build-dashboard.mjs"]);
  const seed = join(root, "dist", "db", "embedded-seed.tar.gz");
  if (!existsSync(seed)) run(process.execPath, ["scripts/build-seed.mjs", seed]);
  writeFileSync(stamp, "");
  linkCommand();
}

/**
 * `npx holdfast` in this folder. npm makes a link of its own, but if it was asked for before there was anything to link to, it
 * does not look again, and says "holdfast: not found" for ever.
 */
function linkCommand() {
  const link = join(root, "node_modules", ".bin", "holdfast");
  if (process.platform !== "win32" && !existsSync(link)) symlinkSync(join("..", "..", "dist", "cli", "main.js"), link);
}
