// A seed is an empty database as one file (.tar.gz): a first start unpacks it instead of running initdb, which costs
// seconds of processor time and twice the memory. It holds nothing but what initdb of the pinned PGlite makes.
// Without the file everything works, only slower. Engine.writeSeed makes one.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gunzipSync } from "node:zlib";

/** The build may put one here. */
const BESIDE = new URL("./embedded-seed.tar.gz", import.meta.url);
const BLOCK = 512;

export function findSeed(given: string | undefined): string | null {
  if (given !== undefined) return given;
  if (BESIDE.protocol !== "file:") return null;
  const path = fileURLToPath(BESIDE);
  return existsSync(path) ? path : null;
}

/** Blocks the thread: it is meant for the engine's. */
export function unpackSeed(seed: string, target: string): void {
  const tar = gunzipSync(readFileSync(seed));
  // A header has the name in its first 100 bytes, the size at 124 as an octal number, the type at 156 ("5": a folder).
  for (let at = 0; at + BLOCK <= tar.length && tar[at] !== 0;) {
    const path = join(target, tar.toString("latin1", at, tar.indexOf(0, at)));
    const isFolder = tar[at + 156] === "5".charCodeAt(0);
    const size = Number.parseInt(tar.toString("latin1", at + 124, at + 135), 8) || 0;
    at += BLOCK;
    mkdirSync(isFolder ? path : dirname(path), { recursive: true, mode: 0o700 });
    if (!isFolder) writeFileSync(path, tar.subarray(at, at + size), { mode: 0o600 });
    at += Math.ceil(size / BLOCK) * BLOCK;
  }
}
