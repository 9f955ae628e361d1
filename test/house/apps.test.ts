// Apps are products on top: what they import of Holdfast comes through its doors, and none reaches into another.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, posix } from "node:path";
import { expect, test } from "vitest";
import { parseSource, readSources, root, type Source } from "./sources.ts";

const DOORS = new Set(["holdfast", "holdfast/guarded-fetch", "holdfast/http", "holdfast/testing"]);

function foreignImports(app: string, sources: Source[], known: ReadonlySet<string>): string[] {
  return sources.flatMap((source) =>
    source.imports.flatMap(({ specifier, line }) => {
      const at = `${source.path}:${line}  `;
      if (specifier.startsWith(".")) {
        const target = posix.join(posix.dirname(source.path), specifier);
        return target.startsWith(`${app}/`) ? [] : [`${at}"${specifier}" is outside of the app`];
      }
      if (specifier.startsWith("#") || specifier.startsWith("holdfast")) {
        return DOORS.has(specifier) ? [] : [`${at}"${specifier}" is no door: ${[...DOORS].join(", ")}`];
      }
      if (specifier.startsWith("node:")) return [];
      const name = specifier
        .split("/")
        .slice(0, specifier.startsWith("@") ? 2 : 1)
        .join("/");
      return known.has(name) ? [] : [`${at}"${name}" is not among the app's dependencies`];
    }),
  );
}

const apps = readdirSync(join(root, "apps")).filter((name) => existsSync(join(root, "apps", name, "package.json")));

test.each(apps)("%s imports only the doors, itself and its own dependencies", (name) => {
  const app = `apps/${name}`;
  const manifest = JSON.parse(readFileSync(join(root, app, "package.json"), "utf8")) as {
    dependencies?: Record<string, string>;
  };
  const sources = readSources(`${app}/src`);
  expect(sources.length).toBeGreaterThan(0);
  const problems = foreignImports(app, sources, new Set(Object.keys(manifest.dependencies ?? {})));
  expect(problems, `\n${problems.join("\n")}\n`).toEqual([]);
});

test("an import of the inside, of another app and of an undeclared package is reported", () => {
  const code = `import "../../../src/open.ts"; import "#src/open.js"; import "holdfast/dist/open.js";
    import "../../other/src/index.ts"; import "pg"; import "holdfast/http"; import "./near.ts"; import "yaml"; import "node:fs";`;
  const problems = foreignImports("apps/one", [parseSource("apps/one/src/a.ts", code)], new Set(["yaml"]));
  expect(problems.map((problem) => problem.split('"')[1])).toEqual([
    "../../../src/open.ts",
    "#src/open.js",
    "holdfast/dist/open.js",
    "../../other/src/index.ts",
    "pg",
  ]);
});

test("every door of the package is one that apps may use, and one that a configuration file finds", () => {
  const { exports } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { exports: object };
  const doors = Object.keys(exports)
    // <job-progress> is for pages in a browser.
    .filter((path) => path !== "./package.json" && path !== "./job-progress")
    .map((path) => path.replace(/^\./, "holdfast"));
  expect(new Set(doors)).toEqual(DOORS);
  const loader = readFileSync(join(root, "src/cli/config-file.ts"), "utf8");
  for (const door of doors) expect(loader).toMatch(new RegExp(`^\\s+"?${door}"?: join\\(`, "m"));
});
