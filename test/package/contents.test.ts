// What `npm pack` would publish: only what is needed, of the size and with the number of dependencies that
// docs/package.md states, and in a form that bundlers and other tools understand.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { publint } from "publint";
import { afterAll, expect, test } from "vitest";

const root = fileURLToPath(new URL("../..", import.meta.url));
const read = (path: string): string => readFileSync(join(root, path), "utf8");

interface Packed {
  filename: string;
  size: number;
  unpackedSize: number;
  files: { path: string; size: number }[];
}
const npm = process.platform === "win32" ? "npm.cmd" : "npm";
const home = mkdtempSync(join(tmpdir(), "holdfast-packed-"));
afterAll(() => rmSync(home, { recursive: true, force: true }));
const [packed] = JSON.parse(
  execFileSync(npm, ["pack", "--json", "--ignore-scripts", "--pack-destination", home], {
    cwd: root,
    encoding: "utf8",
  }),
) as [Packed];

/** Everything that may be there. A new kind of file has to be let in here, by somebody who has thought about it. */
const NEEDED = [
  /^(package\.json|README\.md|CHANGELOG\.md|LICENSE)$/,
  /^dist\/(?!dashboard\/)[\w/-]+(\.generated)?\.(js|d\.ts)$/,
  /^dist\/dashboard\/(index\.html|favicon\.svg|assets\/index-[\w-]+\.(js|css)|apps\/page\.(js|css))(\.gz)?$/,
  /^dist\/db\/embedded-seed\.tar\.gz$/,
  /^docs\/[\w-]+\.md$/,
  /^deploy\/[\w./@-]+$/,
  /^monitoring\/(alerts\.yml|alerts\.test\.yml|dashboard\.json)$/,
  /^starter\/[\w./-]+$/,
];

test("the package contains only what is needed", () => {
  const paths = packed.files.map(({ path }) => path);
  expect(paths.filter((path) => !NEEDED.some((pattern) => pattern.test(path)))).toEqual([]);
  for (const pattern of NEEDED) expect(paths.some((path) => pattern.test(path))).toBe(true);
  // Of each module its code and its types, and nothing whose source is gone.
  const modules = paths.filter((path) => /^dist\/(?!dashboard\/).*\.js$/.test(path));
  expect(modules.length).toBeGreaterThan(100);
  for (const path of modules) expect(paths).toContain(path.replace(/\.js$/, ".d.ts"));
});

test("publint finds nothing", async () => {
  const tarball = new Uint8Array(readFileSync(join(home, packed.filename))).buffer;
  const { messages } = await publint({ strict: true, pack: { tarball } });
  expect(messages).toEqual([]);
});

interface Lock {
  packages: Record<string, { dependencies?: Record<string, string>; optionalDependencies?: Record<string, string> }>;
}

/** What npm puts into an empty project with this package: found in the lock file as Node would find it. */
function shippedPackages(): Set<string> {
  const { packages } = JSON.parse(read("package-lock.json")) as Lock;
  const found = new Set<string>();
  const visit = (from: string): void => {
    const { dependencies, optionalDependencies } = packages[from]!;
    for (const name of Object.keys({ ...dependencies, ...optionalDependencies })) {
      let place = from;
      while (place !== "" && !(`${place}/node_modules/${name}` in packages))
        place = place.includes("/node_modules/") ? place.slice(0, place.lastIndexOf("/node_modules/")) : "";
      const path = place === "" ? `node_modules/${name}` : `${place}/node_modules/${name}`;
      if (found.has(path)) continue;
      expect(packages, `${name}, wanted by ${from || "holdfast"}`).toHaveProperty([path]);
      found.add(path);
      visit(path);
    }
  };
  visit("");
  return found;
}

test("size and dependency count are what docs/package.md states", () => {
  const page = read("docs/package.md");
  const stated = (row: string): number[] => {
    const line = page.split("\n").find((text) => text.startsWith(`| ${row} |`)) ?? "";
    return (line.split("|")[2]?.match(/\d+(\.\d+)?/g) ?? []).map(Number);
  };
  const [packedMb = 0] = stated("packed");
  const [unpackedMb = 0] = stated("unpacked");
  const near = (bytes: number, mb: number): void => expect(Math.abs(bytes / 1e6 / mb - 1)).toBeLessThan(0.05);
  near(packed.size, packedMb);
  near(packed.unpackedSize, unpackedMb);
  const { dependencies } = JSON.parse(read("package.json")) as { dependencies: object };
  expect(stated("dependencies")).toEqual([Object.keys(dependencies).length, shippedPackages().size]);
});
