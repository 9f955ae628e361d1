// `npm test`: sets up everything, then runs vitest. Arguments are handed on: `npm test -- test/job`.
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { build, install, root } from "./set-up.mjs";

install();
build();
const vitest = join("node_modules", "vitest", "vitest.mjs");
const result = spawnSync(process.execPath, [vitest, "run", ...process.argv.slice(2)], { cwd: root, stdio: "inherit" });
process.exit(result.status ?? 1);
