// `npm start`: sets up everything, then runs `holdfast dev` on the embedded database (or on DATABASE_URL), in this very
// process, so that signals need no handing on. Arguments are handed on: `npm start -- --port 7071`.
import { build, install, root } from "./set-up.mjs";

install();
build();
process.chdir(root);
process.argv.splice(2, 0, "dev");
await import("../dist/cli/main.js");
