// Instead of the heartbeat thread's file: it says that it beats, and renews nothing.
import { parentPort } from "node:worker_threads";

parentPort.postMessage({ type: "beat", results: [], sentAt: 0 });
parentPort.on("message", ({ type }) => {
  if (type !== "stop") return;
  parentPort.postMessage({ type: "stopped" });
  parentPort.close();
});
