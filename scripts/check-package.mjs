// `npm run check:package`: the package as it would be published, looked at and used in an empty project.
//
//   publint and are-the-types-wrong find nothing; nothing in the installed tree has an install script;
//   every door works by import and by require, with a real job, on each Node below;
//   its types are right for each TypeScript below, strict, declarations of dependencies included;
//   the SBOM names exactly what is installed.
//
// It fetches Nodes and compilers from the npm registry (some 150 MB the first time, from npm's cache after that).
// What needs neither is in test/package and runs with `npm test`.
import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { makeSbom } from "./make-sbom.mjs";
import { build, install, root } from "./set-up.mjs";

/** The oldest that `engines` allows, and the newest of each line that is kept up. */
const NODES = ["20.19.0", "22.23.3", "24.21.0"];
const COMPILERS = ["5.9.3", "6.0.3"];
const QUIETLY = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", "--prefer-offline"];

install();
build();
const home = mkdtempSync(join(tmpdir(), "holdfast-package-"));
process.once("exit", () => rmSync(home, { recursive: true, force: true }));

function run(command, args, cwd = root) {
  const { status, stdout, stderr, error } = spawnSync(command, args, { cwd, encoding: "utf8", maxBuffer: 64e6 });
  if (status === 0) return stdout;
  throw new Error(`${command} ${args.join(" ")} ended with ${status ?? error}:\n${stdout}${stderr}`);
}

const started = performance.now();
let failures = 0;
function check(what, work) {
  const from = performance.now();
  try {
    work();
    process.stdout.write(`ok    ${what} (${((performance.now() - from) / 1_000).toFixed(1)} s)\n`);
  } catch (error) {
    failures += 1;
    process.stdout.write(`FAIL  ${what}\n${error.message}\n`);
  }
}

run("npm", ["pack", "--ignore-scripts", "--pack-destination", home]);
const tarball = join(home, readdirSync(home)[0]);

check("publint", () => run(join(root, "node_modules/.bin/publint"), ["run", tarball, "--strict"]));
// esm-only: this package has no CommonJS build. That `require` works all the same is shown below, on real Nodes.
check("are the types wrong", () => run(join(root, "node_modules/.bin/attw"), [tarball, "--profile", "esm-only"]));

const project = join(home, "project");
mkdirSync(project);
writeFileSync(join(project, "package.json"), JSON.stringify({ name: "stranger", private: true }));
const lockOf = (folder) => JSON.parse(readFileSync(join(folder, "package-lock.json"), "utf8")).packages;
let installed = [];
check("installs without scripts, and there is none in its tree", () => {
  run("npm", ["install", tarball, ...QUIETLY], project);
  const packages = Object.entries(lockOf(project)).filter(([path]) => path !== "");
  installed = packages.map(([path]) => path.replace(/.*node_modules\//, ""));
  const scripted = packages.filter(([, entry]) => entry.hasInstallScript).map(([path]) => path);
  if (scripted.length > 0) throw new Error(`These have one: ${scripted.join(", ")}`);
});

check("the SBOM names what is installed", () => {
  const { bomFormat, metadata, components } = JSON.parse(makeSbom());
  const named = new Set([metadata.component.name, ...components.map(({ name }) => name)]);
  if (bomFormat !== "CycloneDX" || named.size !== installed.length || installed.some((name) => !named.has(name)))
    throw new Error(`${bomFormat} of ${[...named].join(", ")}; installed are ${installed.join(", ")}.`);
});

cpSync(join(root, "test/package/installed"), project, { recursive: true });
const nodes = join(home, "nodes");
mkdirSync(nodes);
for (const version of NODES) {
  const name = `node-${process.platform}-${process.arch}`;
  const folder = join(nodes, version);
  const node = join(folder, "node_modules", name, "bin", "node");
  check(`Node ${version}: import, require and the command, with a real job`, () => {
    mkdirSync(folder);
    writeFileSync(join(folder, "package.json"), JSON.stringify({ name: "node", private: true }));
    run("npm", ["install", `${name}@${version}`, ...QUIETLY], folder);
    if (!existsSync(node)) throw new Error(`${name}@${version} has no bin/node.`);
    for (const program of ["esm.mjs", "cjs.cjs"]) run(node, [program], project);
    run(node, ["node_modules/holdfast/dist/cli/main.js", "--version"], project);
  });
}

const OPTIONS = { strict: true, skipLibCheck: false, noEmit: true, exactOptionalPropertyTypes: true, types: ["node"] };
const TARGET = { target: "es2023", lib: ["es2023", "esnext.disposable"] };
for (const version of COMPILERS) {
  check(`TypeScript ${version}: strict, with the declarations of dependencies`, () => {
    const compiler = `typescript-${version}`;
    const types = "@types/node@20.19.43";
    run("npm", ["install", `${compiler}@npm:typescript@${version}`, types, ...QUIETLY], project);
    const tsc = join(project, "node_modules", compiler, "bin", "tsc");
    const compile = (compilerOptions, files) => {
      const options = { ...OPTIONS, ...TARGET, ...compilerOptions };
      writeFileSync(join(project, "tsconfig.json"), JSON.stringify({ compilerOptions: options, files }));
      run(process.execPath, [tsc, "-p", "."], project);
    };
    compile({ module: "nodenext" }, ["esm-types.mts", "cjs-types.cts"]);
    compile({ module: "preserve", moduleResolution: "bundler" }, ["esm-types.mts"]);
  });
}

process.stdout.write(`${failures === 0 ? "All is well" : `${failures} failed`} `);
process.stdout.write(`(${Math.round((performance.now() - started) / 1_000)} s).\n`);
process.exitCode = failures === 0 ? 0 : 1;
