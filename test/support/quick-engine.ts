// The embedded database is WebAssembly. V8 first compiles it quickly and then, in the background, compiles once more with care
// whatever runs more than a little, which takes most of the processor time of a process that lives for seconds. With this
// it takes that trouble only for what runs very much, five hundred times as much as by default.
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";

export const QUICK_ENGINE = ["--wasm-tiering-budget=1000000000"];

// Node has it; the types of Node 20 do not.
declare const WebAssembly: { compile(code: Uint8Array): Promise<object> };

let kept: Promise<unknown> | undefined;

/**
 * What one embedded database of a process has compiled is there for the next one, as long as somebody holds the module:
 * without this each of them begins anew.
 */
export function keepEngine(): Promise<unknown> {
  return (kept ??= compileEngine());
}

async function compileEngine(): Promise<unknown> {
  const main = createRequire(import.meta.url).resolve("@electric-sql/pglite");
  return await WebAssembly.compile(await readFile(join(dirname(main), "pglite.wasm")));
}
