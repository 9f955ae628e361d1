// A seed for every embedded database of the tests, made once per machine: initdb costs seconds each time.
import { existsSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Engine } from "../../../dist/db/embedded-engine.js";

const manifest = new URL("../../../node_modules/@electric-sql/pglite/package.json", import.meta.url);

/** @returns {Promise<string>} */
export async function testSeed() {
  const { version } = JSON.parse(readFileSync(fileURLToPath(manifest), "utf8"));
  const path = join(tmpdir(), `holdfast-test-seed-${version}-${process.getuid?.() ?? 0}.tar.gz`);
  if (!existsSync(path)) await Engine.writeSeed(path);
  return path;
}
