// A large document that is real: GitHub's API.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

const PACKAGE = "@octokit/openapi@23.0.2";

/** GitHub's document, or the first so many operations of it. Fetched when it is needed: it is 30 MB of a package. */
export async function readDocument(most) {
  const folder = join(tmpdir(), `holdfast-${PACKAGE.replace("/", "-")}`);
  const file = join(folder, "node_modules", "@octokit", "openapi", "generated", "api.github.com.json");
  if (!existsSync(file)) {
    const args = ["install", "--prefix", folder, "--no-save", "--ignore-scripts", "--no-audit", "--no-fund", PACKAGE];
    const [code] = await once(spawn("npm", args, { stdio: "inherit" }), "exit");
    if (code !== 0) throw new Error(`npm install of ${PACKAGE} failed: see above.`);
  }
  const text = await readFile(file, "utf8");
  if (most === undefined) return text;
  const { openapi, info, paths, components } = JSON.parse(text);
  const some = {};
  let count = 0;
  for (const [path, item] of Object.entries(paths)) {
    if (count >= most) break;
    some[path] = item;
    count += Object.keys(item).length;
  }
  return JSON.stringify({ openapi, info, paths: some, components: { parameters: components.parameters } });
}
