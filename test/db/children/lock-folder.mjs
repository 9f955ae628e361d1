// Takes the lock of a folder, or prints why not, and holds it until its input ends.
// node lock-folder.mjs <folder> <JSON of LockOptions> [time to wait for, in ms since the epoch]
import { lockFolder } from "../../../dist/db/folder-lock.js";

const [folder, options, at] = process.argv.slice(2);
while (Date.now() < Number(at ?? 0));
try {
  const lock = await lockFolder(folder, JSON.parse(options));
  process.stdout.write("held\n");
  for await (const _ of process.stdin);
  await lock.release();
} catch (error) {
  process.stdout.write(`${error.code} ${error.message}\n`);
}
