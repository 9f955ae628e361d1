// Which Node this is, and whether it still gets fixes.
import { type Finding, ok, problem, warning } from "../client/doctor/finding.ts";

/** Ends of life, from the release plan of Node. Odd ones live for half a year and are not for servers. */
const ENDS: Readonly<Record<number, string>> = {
  20: "2026-04-30",
  22: "2027-04-30",
  24: "2028-04-30",
  26: "2029-04-30",
};
const LEAST: readonly [number, number] = [20, 19];

export function checkNode(version: string, today = new Date()): Finding {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  if (major < LEAST[0] || (major === LEAST[0] && minor < LEAST[1])) {
    const message = `Node ${version} is older than ${LEAST.join(".")}.`;
    return problem("node", message, "Install Node 24.");
  }
  const end = ENDS[major];
  if (end !== undefined && new Date(end) < today) {
    const message = `Node ${version} gets no security fixes since ${end}.`;
    return warning("node", message, "Install Node 24.");
  }
  return ok("node", `Node ${version}`);
}
