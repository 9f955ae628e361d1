// `npm start`: sets up everything, then runs `holdfast dev` on the embedded database (or on DATABASE_URL).
import { spawn } from "node:child_process";
import { join } from "node:path";
import { build, install, root } from "./set-up.mjs";

install();
build();
const child = spawn(process.execPath, [join("dist", "cli", "main.js"), "dev", ...process.argv.slice(2)], {
  cwd: root,
  stdio: "inherit",
});
// A terminal's Ctrl-C reaches the child by itself; a signal sent to this process alone must be handed on.
for (const signal of ["SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
process.on("SIGINT", () => {});
child.on("exit", (code, signal) => process.exit(code ?? (signal === "SIGKILL" ? 137 : 1)));
