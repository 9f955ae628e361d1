// What a bundler makes of the package: who only defines jobs gets no database and no server, and nothing that has an effect
// when it is loaded is left out.
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build, type Rollup } from "vite";
import { expect, test } from "vitest";

const root = fileURLToPath(new URL("../..", import.meta.url));

/** The modules that have code in a bundle of these lines. */
async function bundle(code: string): Promise<{ modules: string[]; packages: string[]; code: string }> {
  const entry = "\0entry.js";
  const result = (await build({
    root,
    configFile: false,
    logLevel: "silent",
    ssr: { noExternal: true },
    plugins: [
      {
        name: "entry",
        resolveId: (id) => (id === "entry.js" ? entry : null),
        load: (id) => (id === entry ? code : null),
      },
    ],
    build: { ssr: true, write: false, minify: false, rollupOptions: { input: "entry.js" } },
  })) as Rollup.RollupOutput;
  const chunks = result.output.filter((chunk) => chunk.type === "chunk");
  const modules = chunks.flatMap((chunk) =>
    Object.entries(chunk.modules).flatMap(([id, { renderedLength }]) => (renderedLength > 0 ? [id] : [])),
  );
  const packages = modules.flatMap((id) => /.*node_modules\/((@[^/]+\/)?[^/]+)/.exec(id)?.[1] ?? []);
  return { modules, packages: [...new Set(packages)].sort(), code: chunks.map((chunk) => chunk.code).join("\n") };
}

const door = JSON.stringify(`${root}/dist/index.js`);

test("a bundle of defineJob has no driver, no embedded database and no server in it", async () => {
  const { packages, code } = await bundle(
    `import { defineJob } from ${door}; export default defineJob("a", { run() {} });`,
  );
  expect(packages).toEqual([]);
  expect(code).toContain("defineJob");
  expect(code.length).toBeLessThan(60_000);
});

test("a bundle of open() has every routine in it", async () => {
  const { modules, packages } = await bundle(`import { open } from ${door}; export default open;`);
  expect(packages).toContain("pg");
  expect(packages).not.toContain("hono");
  const routines = join(root, "dist/store/routines.js");
  const verbs = [...readFileSync(routines, "utf8").matchAll(/^import "(.+)";$/gm)].map(([, path = ""]) =>
    join(dirname(routines), path),
  );
  expect(verbs.length).toBeGreaterThan(40);
  expect(verbs.filter((verb) => !modules.includes(verb))).toEqual([]);
});
