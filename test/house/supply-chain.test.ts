// What comes along when somebody installs the package: few packages, none with a script that runs at install.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { root } from "./sources.ts";

interface Lock {
  packages: Record<string, { version?: string; dev?: boolean; optional?: boolean; hasInstallScript?: boolean }>;
}

const read = (path: string): unknown => JSON.parse(readFileSync(join(root, path), "utf8"));

test("the package runs nothing when it is installed, and publishes only what is listed", () => {
  const { scripts, files } = read("package.json") as { scripts: Record<string, string>; files: string[] };
  expect(Object.keys(scripts).filter((name) => /install|prepare|prepublish|postpack/.test(name))).toEqual([]);
  expect(files).toEqual(expect.arrayContaining(["dist"]));
  expect(files.filter((path) => /^(src|test|\.|\*)/.test(path))).toEqual([]);
});

test("no package that users get has an install script", () => {
  const { packages } = read("package-lock.json") as Lock;
  const shipped = Object.entries(packages).filter(([path, entry]) => path !== "" && !entry.dev);
  expect(shipped.length).toBeGreaterThan(5);
  expect(shipped.filter(([, entry]) => entry.hasInstallScript).map(([path]) => path)).toEqual([]);
});
