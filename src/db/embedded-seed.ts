// A seed is an empty database as one file: a first start unpacks it instead of running initdb, which costs several
// seconds of processor time and twice the memory. It holds nothing but what initdb of the pinned PGlite makes.
// Without the file everything works, only slower.
import { existsSync } from "node:fs";
import { rename, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";

/** The build may put one here. */
const BESIDE = new URL("./embedded-seed.tar.gz", import.meta.url);

export function findSeed(given: string | undefined): string | null {
  if (given !== undefined) return given;
  if (BESIDE.protocol !== "file:") return null;
  const path = fileURLToPath(BESIDE);
  return existsSync(path) ? path : null;
}

/** Nobody ever sees half of it. */
export async function writeSeed(path: string): Promise<void> {
  // Here, so that finding one does not load PGlite.
  const { Engine } = await import("./embedded-engine.ts");
  const engine = await Engine.open(null, null);
  const seed = await engine.dump();
  await engine.close();
  await writeFile(`${path}.${process.pid}`, seed);
  await rename(`${path}.${process.pid}`, path);
}
