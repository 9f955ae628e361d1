// Builds the dashboard into dist/dashboard, with a packed copy beside each file, so that the server need not pack.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { build } from "vite";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
await build({ configFile: join(root, "dashboard", "vite.config.mjs") });

const target = join(root, "dist", "dashboard");
for (const entry of readdirSync(target, { recursive: true, withFileTypes: true })) {
  if (!entry.isFile() || !/\.(html|js|css|svg)$/.test(entry.name)) continue;
  const path = join(entry.parentPath, entry.name);
  writeFileSync(`${path}.gz`, gzipSync(readFileSync(path), { level: 9 }));
}
