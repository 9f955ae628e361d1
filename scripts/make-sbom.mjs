// `npm run sbom`: prints an SBOM (CycloneDX) of the package and of everything that comes with it, in the versions of the lock
// file. Not `npm sbom` in this folder: the apps depend on the package that they are in, and npm goes round in circles.
import { spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { root } from "./set-up.mjs";

export function makeSbom() {
  const home = mkdtempSync(join(tmpdir(), "holdfast-sbom-"));
  try {
    // npm names the whole after its folder.
    const folder = join(home, "holdfast");
    mkdirSync(folder);
    const { name, version, description, license, dependencies } = JSON.parse(
      readFileSync(join(root, "package.json"), "utf8"),
    );
    const manifest = { name, version, description, license, dependencies };
    writeFileSync(join(folder, "package.json"), JSON.stringify(manifest));
    copyFileSync(join(root, "package-lock.json"), join(folder, "package-lock.json"));
    const npm = (...args) => {
      const options = { cwd: folder, encoding: "utf8", maxBuffer: 64e6 };
      const { status, stdout, stderr } = spawnSync("npm", [...args, "--package-lock-only"], options);
      if (status !== 0) throw new Error(`npm ${args.join(" ")} failed:\n${stderr}`);
      return stdout;
    };
    // Takes out of the lock file what the apps and the tests need.
    npm("install", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline");
    return npm("sbom", "--sbom-format", "cyclonedx", "--sbom-type", "library");
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}

if (process.argv[1] === import.meta.filename) process.stdout.write(makeSbom());
