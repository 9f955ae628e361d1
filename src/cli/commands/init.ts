// holdfast init: a working project, with one kind of job, its test, a configuration and a PostgreSQL for development.
// Nothing that is there is overwritten: one file in the way, and none is written. Only a package.json may be there: a project
// that has one keeps it, and is told what it lacks.
import { lstat, mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import type { Command } from "commander";
import { version } from "../../shared/version.ts";
import { EXIT } from "../exit-codes.ts";
import { note, print } from "../output.ts";
import { Problem } from "../problem.ts";

const STARTER = fileURLToPath(new URL("../../../starter", import.meta.url));
const MANIFEST = "package.json";
/** npm leaves files of these names out of a package, or reads them itself. */
const RENAMED: Readonly<Record<string, string>> = { gitignore: ".gitignore", "env.example": ".env.example" };

export function addInit(program: Command): void {
  program
    .command("init")
    .summary("make a working project with one job and its test")
    .description(
      "Makes a working project in this folder, or in the one that is named: a kind of job, its test, a configuration,\n" +
        "and a compose file with PostgreSQL. Overwrites nothing; a package.json that is there stays as it is.",
    )
    .argument("[folder]", "where", ".")
    .option("--dry-run", "say what would be made, and make nothing")
    .addHelpText("after", "\nExample:\n  npx holdfast init my-jobs && cd my-jobs && npm install && npm run dev")
    .action(runInit);
}

async function runInit(folder: string, { dryRun }: { dryRun?: boolean }): Promise<void> {
  const root = resolve(folder);
  const starter = await readStarter(root);
  const isProject = await exists(join(root, MANIFEST));
  const files = starter.filter(({ name }) => !isProject || name !== MANIFEST);
  const inTheWay: string[] = [];
  for (const { name } of files) if (await exists(join(root, name))) inTheWay.push(name);
  if (inTheWay.length > 0) {
    throw new Problem(
      `${inTheWay.length === 1 ? "A file is" : "Files are"} in the way in ${root}: ${inTheWay.join(", ")}.`,
      "Nothing was written. Name a new folder: holdfast init my-jobs",
      EXIT.conflict,
    );
  }
  for (const { name, text } of files) {
    print(name);
    if (dryRun) continue;
    await mkdir(dirname(join(root, name)), { recursive: true });
    // One that came in the meantime is not overwritten either.
    await writeFile(join(root, name), text, { flag: "wx" });
  }
  if (dryRun) return note(`Nothing was written: this is what would be, in ${root}.`);
  const enter = root === process.cwd() ? "" : `cd ${folder} && `;
  const next = isProject
    ? stepsInProject(
        asManifest(starter.find(({ name }) => name === MANIFEST)?.text),
        asManifest(await readFile(join(root, MANIFEST), "utf8")),
      )
    : ["npm install", "npm run dev", "npm test"];
  const kept = isProject ? ` ${MANIFEST} was there, and is as it was.` : "";
  note(`Made in ${root}.${kept} Next:\n  ${enter}${next.join("\n  ")}`);
}

interface Manifest {
  dependencies?: Record<string, string>;
  devDependencies?: Record<string, string>;
  scripts?: Record<string, string>;
}

/** What the starter's own package.json would have brought, without what the project has. */
function stepsInProject(starter: Manifest, own: Manifest): string[] {
  const known = { ...own.dependencies, ...own.devDependencies };
  const lacking = (packages: Record<string, string> = {}): string[] =>
    Object.keys(packages).filter((name) => !(name in known));
  const { dev = "", test = "" } = starter.scripts ?? {};
  const [needed, forWork] = [lacking(starter.dependencies), lacking(starter.devDependencies)];
  return [
    ...(needed.length > 0 ? [`npm install ${needed.join(" ")}`] : []),
    ...(forWork.length > 0 ? [`npm install --save-dev ${forWork.join(" ")}`] : []),
    `npx ${dev}`,
    test,
  ];
}

/** One that cannot be read is npm's business. */
function asManifest(text = "{}"): Manifest {
  try {
    return (JSON.parse(text) ?? {}) as Manifest;
  } catch {
    return {};
  }
}

async function readStarter(root: string): Promise<{ name: string; text: string }[]> {
  const entries = await readdir(STARTER, { recursive: true, withFileTypes: true });
  const paths = entries.filter((entry) => entry.isFile()).map(({ parentPath, name }) => join(parentPath, name));
  const read = paths.toSorted().map(async (path) => {
    const given = path.slice(STARTER.length + 1);
    const text = await readFile(path, "utf8");
    return { name: RENAMED[given] ?? given, text: given === MANIFEST ? asPackage(text, root) : text };
  });
  return await Promise.all(read);
}

/** Its name is the folder's; its Holdfast is this one. */
function asPackage(text: string, root: string): string {
  const name = basename(root)
    .toLowerCase()
    .replace(/[^a-z0-9._-]+/g, "-")
    .replace(/^[._-]+|[._-]+$/g, "");
  return text
    .replace('"name": "my-jobs"', () => `"name": ${JSON.stringify(name || "my-jobs")}`)
    .replace('"holdfast": "*"', () => `"holdfast": ${JSON.stringify(`^${version()}`)}`);
}

async function exists(path: string): Promise<boolean> {
  return await lstat(path).then(
    () => true,
    () => false,
  );
}
