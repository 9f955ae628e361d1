// Instead of the heartbeat thread's file.
import { parentPort } from "node:worker_threads";

parentPort.on("message", () => {
  throw new Error("fell over");
});
