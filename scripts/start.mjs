// `npm start`: sets up everything, then runs `holdfast dev` on the embedded database (or on DATABASE_URL), in this very
// process, so that signals need no handing on. Arguments are handed on: `npm start -- --port 7071`.
import { build, install, root } from "./set-up.mjs";

install();
build();

if (process.env.npm_lifecycle_event === "start") {
  // npm hands SIGTERM to its shell, and that does not hand it on: when the shell is gone, stop too.
  const shell = process.ppid;
  const watch = setInterval(() => {
    if (process.ppid === shell) return;
    clearInterval(watch);
    process.kill(process.pid, "SIGTERM");
  }, 500);
  watch.unref();
}

process.chdir(root);
process.argv.splice(2, 0, "dev");
await import("../dist/cli/main.js");
