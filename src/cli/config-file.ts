// Finds and loads holdfast.config.{ts,mts,js,mjs,json}, and checks what it holds. TypeScript is read by jiti; whatever
// the file imports from "holdfast" is the very copy that runs here, so that its Fatal is our Fatal.
import { access, readFile } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { checkConfig } from "./check-config.ts";
import type { HoldfastConfig } from "./config.ts";
import { EXIT } from "./exit-codes.ts";
import { Problem } from "./problem.ts";

const CONFIG_NAMES = ["ts", "mts", "js", "mjs", "json"].map((extension) => `holdfast.config.${extension}`);

export interface LoadedConfig {
  /** As people should read it: "holdfast.config.ts". */
  name: string;
  path: string;
  config: HoldfastConfig;
}

export interface ConfigLoader {
  /** None is fine, unless one was asked for. Loaded again, all of it is read anew. */
  load(): Promise<LoadedConfig | null>;
  /** What the last load read, or looked for: whoever waits for changes watches these. Packages are not among them. */
  files(): readonly string[];
}

/** `asked`: the file named by --config; otherwise the folder is searched. */
export function makeConfigLoader(folder: string, asked?: string): ConfigLoader {
  const read = new Set<string>();
  return {
    async load() {
      const path = asked === undefined ? await findConfig(folder) : resolve(folder, asked);
      if (path === null) return null;
      const name = asked ?? basename(path);
      if (!(await exists(path))) {
        throw new Problem(`The configuration file ${name} is not there.`, "Check the path after --config.", EXIT.usage);
      }
      return { name, path, config: checkConfig(name, await evaluate(name, path, read)) };
    },
    files: () => [
      ...(asked === undefined ? CONFIG_NAMES.map((name) => join(folder, name)) : [resolve(folder, asked)]),
      ...read,
    ],
  };
}

export async function loadConfig(folder: string, asked?: string): Promise<LoadedConfig | null> {
  return await makeConfigLoader(folder, asked).load();
}

async function findConfig(folder: string): Promise<string | null> {
  const found: string[] = [];
  for (const name of CONFIG_NAMES) if (await exists(join(folder, name))) found.push(name);
  if (found.length > 1) {
    const hint = "Keep one of them, or say which with --config.";
    throw new Problem(`There are several configuration files here: ${found.join(", ")}.`, hint, EXIT.usage);
  }
  return found[0] === undefined ? null : join(folder, found[0]);
}

async function evaluate(name: string, path: string, read: Set<string>): Promise<unknown> {
  try {
    if (path.endsWith(".json")) return JSON.parse(await readFile(path, "utf8")) as unknown;
    const { createJiti } = await import("jiti");
    const doors = ownDoors();
    const jiti = createJiti(path, {
      alias: doors,
      nativeModules: Object.values(doors),
      fsCache: await cacheBeside(path),
    });
    for (const file of read) delete jiti.cache[file];
    const before = new Set(Object.keys(jiti.cache));
    read.clear();
    const exported = await jiti.import<{ default?: unknown }>(path).finally(() => {
      const isOurs = (file: string): boolean => !before.has(file) && !/[\\/]node_modules[\\/]/.test(file);
      for (const file of Object.keys(jiti.cache)) if (isOurs(file)) read.add(file);
    });
    // jiti answers for a default export that is not there with the module itself.
    const given = Object.keys(exported).includes("default") ? exported.default : undefined;
    return typeof given === "function" ? ((await given()) as unknown) : given;
  } catch (error) {
    // A wrong option in a defineJob() of theirs says by itself what to do.
    const hint = hintOf(error) ?? whereOf(error, path);
    const why = error instanceof Error ? error.message : String(error);
    throw new Problem(`${name} cannot be loaded: ${why}`, hint, EXIT.usage, { cause: error });
  }
}

/**
 * What jiti compiled is kept beside the project's packages, checked by its content: compiling takes most of the time of a short
 * command. Not elsewhere: in a folder for temporary files others could put something there.
 */
async function cacheBeside(path: string): Promise<string | false> {
  const packages = join(dirname(path), "node_modules");
  return (await exists(packages)) && join(packages, ".cache", "holdfast");
}

/** By its shape: an app in a package of its own may have brought another copy of Holdfast along. */
function hintOf(error: unknown): string | undefined {
  return error instanceof Error && "hint" in error && typeof error.hint === "string" ? error.hint : undefined;
}

/** "holdfast" and its doors, as the files that this process runs. */
function ownDoors(): Record<string, string> {
  const built = fileURLToPath(new URL("..", import.meta.url));
  return {
    "holdfast/guarded-fetch": join(built, "guarded-fetch", "index.js"),
    "holdfast/http": join(built, "http", "index.js"),
    "holdfast/testing": join(built, "testing", "index.js"),
    holdfast: join(built, "index.js"),
  };
}

function whereOf(error: unknown, path: string): string {
  const stack = error instanceof Error ? (error.stack ?? "") : "";
  const line = stack.split("\n").find((text) => text.includes(path));
  return line ? `It fails ${line.trim()}.` : "Correct the file.";
}

async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
