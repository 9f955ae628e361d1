// Errors that differ only in what they are about (numbers, ids, addresses, quoted texts) are the same error.
import { createHash } from "node:crypto";
import type { ErrorRecord } from "./outcome.ts";

const MOST = 500;

/** What is left of a message when everything particular is taken out of it. */
function essenceOf(error: ErrorRecord): string {
  const message = error.message
    .slice(0, MOST)
    .replace(/[a-z][a-z0-9+.-]*:\/\/\S+/gi, "<url>")
    .replace(/[\w.+-]+@[\w-]+\.[\w.-]+/g, "<mail>")
    .replace(/\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/gi, "<id>")
    .replace(/"[^"]*"|'[^']*'|`[^`]*`|«[^»]*»/g, "<text>")
    .replace(/\b(?:0x)?[0-9a-f]*\d[0-9a-f]{7,}\b/gi, "<id>")
    .replace(/\d+(?:[.,:]\d+)*/g, "<n>")
    .replace(/\s+/g, " ")
    .trim();
  return [error.name, error.reason ?? "", error.code ?? "", message].join(" | ");
}

export function fingerprintOf(error: ErrorRecord): string {
  return createHash("sha256").update(essenceOf(error)).digest("hex").slice(0, 16);
}
