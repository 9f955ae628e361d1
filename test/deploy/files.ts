// The files of deploy/, read once for the tests beside this.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { resolveWorkOptions } from "#src/options.js";

export const root = fileURLToPath(new URL("../../", import.meta.url));
export const folder = join(root, "deploy");
export const read = (path: string): string => readFileSync(join(folder, path), "utf8");
export const files = readdirSync(folder, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile())
  .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
  .sort();

/** How long serve() waits for open connections when it closes (src/http/serve.ts). */
const CLOSE_SECONDS = 3;

/** How long a stop takes at most with the product's defaults, and some seconds for the database. */
export function longestStopSeconds(): number {
  const { graceMs, abortMs } = resolveWorkOptions({});
  return (graceMs + abortMs) / 1_000 + CLOSE_SECONDS + 5;
}
