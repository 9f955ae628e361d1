// The doors of the package: what package.json lets others import, with the declarations that are published and the source
// that they are made of. The reference is made of it, and test/house holds its comments to it.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "./pages.mjs";

/** @returns {{ door: string, types: string, source: string }[]} `door` as it is imported; the files as full paths. */
export function packageDoors() {
  const { name, exports } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  return Object.entries(exports)
    .filter(([, target]) => typeof target !== "string")
    .map(([door, { types }]) => ({
      door: door.replace(".", name),
      types: join(root, types),
      source: join(root, sourceOf(types)),
    }));
}

/** What runs in a browser is not in src. */
const sourceOf = (types) =>
  types
    .replace("./dist/job-progress/", "dashboard/widget/")
    .replace("./dist/", "src/")
    .replace(/\.d\.ts$/, ".ts");
