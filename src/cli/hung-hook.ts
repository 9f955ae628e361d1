// Ends a dev, start or worker process whose main thread hangs, so that its other jobs move on and whoever watches over
// it can start it again. Called in the heartbeat thread: the main thread can do nothing any more, not even write, and a
// thread cannot exit for its process. `?log=` in the address says which log lines the process writes.
import { writeSync } from "node:fs";
import type { HungHook } from "../worker/beat-thread.ts";
import { makeLog } from "./log.ts";

const onHung: HungHook = ({ jobs, silentForMs }) => {
  const format = new URL(import.meta.url).searchParams.get("log") === "json" ? "json" : "human";
  const log = makeLog({ format, level: "error", color: false, write: (text) => void writeSync(2, text) });
  try {
    const named = jobs.map((job) => `${job.kind} ${job.id}`).join(", ");
    const seconds = Math.round(silentForMs / 1_000);
    log.error(`The process hangs (for ${seconds} s) and is killed. Past the timeout, and settled as such: ${named}.`, {
      hint: "A handler blocks the event loop: move what computes into a thread, or let go of it now and then.",
    });
  } finally {
    process.kill(process.pid, "SIGKILL");
  }
};

export default onHung;
