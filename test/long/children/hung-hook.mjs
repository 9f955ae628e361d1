// What a caller may give as `hungHook`: it is called in the heartbeat thread, and ends the process, so that its other jobs
// move on.
import { writeSync } from "node:fs";

export default function onHung({ jobs, silentForMs }) {
  // Not by process.stdout: that needs the main thread.
  writeSync(1, `${JSON.stringify({ what: "hung", jobs, silentForMs })}\n`);
  process.kill(process.pid, "SIGKILL");
}
