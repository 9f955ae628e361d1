// A hook that waits a while before it ends the process: until then it is there, without beats.
import { writeSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import onHung from "./hung-hook.mjs";

export default async function onHungLater(what) {
  writeSync(1, `${JSON.stringify({ what: "noticed" })}\n`);
  await sleep(7_000);
  onHung(what);
}
