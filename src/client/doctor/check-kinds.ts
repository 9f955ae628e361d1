// Kinds whose settings do not fit each other.
import type { AnyJobKind } from "../../job/define-job.ts";
import { kindWarnings } from "../../job/warnings.ts";
import { count, type Finding, ok, warning } from "./finding.ts";

export function checkKinds(kinds: readonly AnyJobKind[]): Finding[] {
  const found = kindWarnings(kinds).map(({ message }) => {
    // Its last sentence says what to set.
    const at = message.indexOf(" Set ");
    return warning("kinds", message.slice(0, at), message.slice(at + 1));
  });
  if (found.length > 0) return found;
  return [ok("kinds", kinds.length === 0 ? "none are known here" : `${count(kinds.length, "kind")}, settings fit`)];
}
