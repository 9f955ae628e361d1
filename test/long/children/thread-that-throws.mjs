// Instead of the heartbeat thread's file: it beats once, and falls over.
import { parentPort } from "node:worker_threads";

parentPort.postMessage({ type: "beat", results: [], sentAt: 0 });
parentPort.on("message", () => {
  throw new Error("fell over");
});
