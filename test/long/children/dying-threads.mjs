// Instead of the heartbeat thread's file: one that dies, in the way that its URL says.
import { parentPort } from "node:worker_threads";

const how = new URL(import.meta.url).searchParams.get("die");
if (how === "at once") throw new Error("cannot be loaded");
parentPort.on("message", () => {
  if (how === "exit") process.exit(0);
  throw new Error("fell over");
});
