// What Postgres can keep. Two sides: what a user hands in is refused when it could not come back the same
// (`toStorableJson`); what Holdfast itself writes about a failure is made to fit (`cleanText`), because the failure
// path must never fail.
import { PayloadInvalid } from "../errors.ts";

export const MAX_PAYLOAD_BYTES = 1_048_576 * 10;
const MAX_DEPTH = 200;

/** JSON text that comes back from a jsonb column as the same value; or a PayloadInvalid that names the place. */
export function toStorableJson(what: string, value: unknown): string {
  if (value === undefined) return "null";
  check(what, value, "", 0);
  let json: string | undefined;
  try {
    json = JSON.stringify(value);
  } catch (error) {
    throw new PayloadInvalid(
      `${what} cannot be written as JSON: ${error instanceof Error ? error.message : "toJSON failed"}`,
      "Hand over plain data.",
      { cause: error },
    );
  }
  if (json === undefined) throw refuse(what, "", "is a function or a symbol", "Leave it out.");
  // A string's toJSON may have produced what the walk could not see.
  if (json.includes("\\u") && UNSTORABLE_ESCAPE.test(json.replaceAll("\\\\", ""))) {
    throw refuse(what, "", "holds a NUL character or half of a surrogate pair", "Remove it, or send it as base64.");
  }
  if (json.length > MAX_PAYLOAD_BYTES / 4 && Buffer.byteLength(json) > MAX_PAYLOAD_BYTES) {
    throw new PayloadInvalid(
      `${what} is ${Buffer.byteLength(json)} bytes of JSON; at most ${MAX_PAYLOAD_BYTES} are taken.`,
      "Put the bytes into an inbox or a store of yours and hand over a reference.",
    );
  }
  return json;
}

const UNSTORABLE_ESCAPE = /\\u(?:0000|d[89a-f][0-9a-f]{2})/i;

function check(what: string, value: unknown, path: string, depth: number): void {
  switch (typeof value) {
    case "string":
      if (value.includes("\0")) throw refuse(what, path, "holds a NUL character", "Remove it, or send it as base64.");
      if (!value.isWellFormed()) {
        throw refuse(what, path, "holds half of a surrogate pair", "Send text that is valid Unicode, or base64.");
      }
      return;
    case "number":
      if (!Number.isFinite(value)) throw refuse(what, path, `is ${value}`, "JSON has no such number: send a string.");
      return;
    case "bigint":
      throw refuse(what, path, "is a BigInt", "JSON has no such number: send it as a string.");
    case "function":
    case "symbol":
      throw refuse(what, path, `is a ${typeof value}`, "Leave it out.");
    case "object": {
      if (value === null) return;
      if (depth >= MAX_DEPTH) {
        throw refuse(
          what,
          path.slice(0, 80),
          `is nested deeper than ${MAX_DEPTH} levels (or holds itself)`,
          "Flatten it.",
        );
      }
      if (typeof (value as { toJSON?: unknown }).toJSON === "function") return;
      if (Array.isArray(value)) {
        for (let index = 0; index < value.length; index += 1) check(what, value[index], `${path}[${index}]`, depth + 1);
        return;
      }
      if (value instanceof Map || value instanceof Set) {
        throw refuse(
          what,
          path,
          `is a ${value.constructor.name}, which JSON writes as {}`,
          "Send an array or an object.",
        );
      }
      for (const key of Object.keys(value)) {
        if (key.includes("\0") || !key.isWellFormed()) {
          throw refuse(what, path, "has a key with a NUL character or half of a surrogate pair", "Rename the key.");
        }
        const member = (value as Record<string, unknown>)[key];
        if (member !== undefined) check(what, member, `${path}.${key}`, depth + 1);
      }
      return;
    }
    default:
      return;
  }
}

function refuse(what: string, path: string, problem: string, hint: string): PayloadInvalid {
  return new PayloadInvalid(`${what}${path === "" ? "" : ` at ${path}`} ${problem}.`, hint);
}

/** Any text, made storable: NUL and lone surrogates replaced, cut to a number of characters without halving one. */
export function cleanText(text: unknown, maxLength: number): string {
  let clean: string;
  try {
    clean = String(text);
  } catch {
    clean = "(no text)";
  }
  if (clean.length > maxLength) clean = `${clean.slice(0, maxLength - 1)}…`;
  return clean.replaceAll("\0", "\uFFFD").toWellFormed();
}

/** Refuses JSON text whose integers JavaScript would silently round. For text that arrives over a wire. */
export function refuseRoundedIntegers(what: string, json: string): void {
  for (const [text] of json.matchAll(/"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g)) {
    if (text.startsWith('"') || !/^-?\d{16,}$/.test(text)) continue;
    if (!Number.isSafeInteger(Number(text)) && BigInt(text) !== BigInt(Number(text))) {
      throw new PayloadInvalid(
        `${what} holds the integer ${text.slice(0, 40)}, which JavaScript cannot keep exactly.`,
        "Send it as a string.",
      );
    }
  }
}
