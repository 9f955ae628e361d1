// `npm run test:peers`: Holdfast and its peers under the same faults. README.md in faults/ says how.
//
//   -- --row=poison,kill          only these rows
//   -- --only=holdfast,pg-boss    only these contenders; nothing is written into docs/proof.md then
import { spawnSync } from "node:child_process";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build, install } from "../scripts/set-up.mjs";
import { installBench, nodeForAll } from "./compare.mjs";

install();
build();
installBench();
const script = join(dirname(fileURLToPath(import.meta.url)), "faults", "run.mjs");
const { status } = spawnSync(nodeForAll(), [script, ...process.argv.slice(2)], { stdio: "inherit" });
process.exit(status ?? 1);
