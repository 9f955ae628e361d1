// Instead of the heartbeat thread's file: one that takes for ever to start, and only knows how to stop.
import { parentPort } from "node:worker_threads";

parentPort.on("message", ({ type }) => {
  if (type !== "stop") return;
  parentPort.postMessage({ type: "stopped" });
  parentPort.close();
});
