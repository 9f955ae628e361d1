// What Postgres can keep. Two sides: what a user hands in is refused when it could not come back the same
// (`toStorableJson`); what Holdfast itself writes about a failure is made to fit (`cleanText`), because the failure
// path must never fail.
import { PayloadInvalid } from "../errors.ts";

export const MAX_PAYLOAD_BYTES = 1_048_576 * 10;
const MAX_DEPTH = 200;

/** JSON text that comes back from a jsonb column as the same value; or a PayloadInvalid that names the place. */
export function toStorableJson(what: string, value: unknown): string {
  if (value === undefined) return "null";
  const found = findProblem(value, 0);
  if (found) throw refuse(what, found);
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
  if (json === undefined) throw refuse(what, problem("is a function or a symbol", "Leave it out."));
  // A string's toJSON may have produced what the walk could not see.
  if (json.includes("\\u") && UNSTORABLE_ESCAPE.test(json.replaceAll("\\\\", ""))) {
    throw refuse(
      what,
      problem("holds a NUL character or half of a surrogate pair", "Remove it, or send it as base64."),
    );
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

interface Problem {
  /** From the inside out. */
  path: string[];
  text: string;
  hint: string;
}

const problem = (text: string, hint: string): Problem => ({ path: [], text, hint });

/** What about this value could not be kept. The path is built only on the way out of a problem. */
function findProblem(value: unknown, depth: number): Problem | undefined {
  switch (typeof value) {
    case "string":
      if (value.includes("\0")) return problem("holds a NUL character", "Remove it, or send it as base64.");
      if (!value.isWellFormed()) {
        return problem("holds half of a surrogate pair", "Send text that is valid Unicode, or base64.");
      }
      return undefined;
    case "number":
      return Number.isFinite(value) ? undefined : problem(`is ${value}`, "JSON has no such number: send a string.");
    case "bigint":
      return problem("is a BigInt", "JSON has no such number: send it as a string.");
    case "function":
    case "symbol":
      return problem(`is a ${typeof value}`, "Leave it out.");
    case "object":
      return value === null ? undefined : findProblemIn(value, depth);
    default:
      return undefined;
  }
}

function findProblemIn(value: object, depth: number): Problem | undefined {
  if (depth >= MAX_DEPTH) return problem(`is nested deeper than ${MAX_DEPTH} levels (or holds itself)`, "Flatten it.");
  if (value instanceof Date) {
    return Number.isNaN(value.getTime()) ? problem("is an invalid Date", "Send a valid one, or null.") : undefined;
  }
  const written = writtenBy(value);
  if (written !== value) return findProblem(written, depth + 1);
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index += 1) {
      const found =
        value[index] === undefined
          ? problem("is undefined, which a list cannot hold in JSON", "Send null, or leave it out.")
          : findProblem(value[index], depth + 1);
      if (found) return within(found, `[${index}]`);
    }
    return undefined;
  }
  const builtIn = Object.getPrototypeOf(value) === Object.prototype ? undefined : builtInName(value);
  if (builtIn !== undefined) {
    const article = /^[AEIO]/.test(builtIn) ? "an" : "a";
    return problem(`is ${article} ${builtIn}, which JSON does not keep`, "Send an array, an object or a text.");
  }
  for (const key of Object.keys(value)) {
    if (key.includes("\0") || !key.isWellFormed()) {
      return problem("has a key with a NUL character or half of a surrogate pair", "Rename the key.");
    }
    const found = findProblem((value as Record<string, unknown>)[key], depth + 1);
    if (found) return within(found, `.${key}`);
  }
  return undefined;
}

/** What JSON would write, without a word, as {} or as an object of numbered members. */
const BUILT_IN =
  /^\[object ((?:Weak)?(?:Map|Set)|Promise|RegExp|Error|(?:Shared)?ArrayBuffer|DataView|(?:Int|Uint|Float|BigInt|BigUint|Uint8Clamped)\d*Array)\]$/;

const builtInName = (value: object): string | undefined => BUILT_IN.exec(Object.prototype.toString.call(value))?.[1];

/** What a toJSON of its own makes of it; one that throws is left for JSON.stringify to report. */
function writtenBy(value: object): unknown {
  const { toJSON } = value as { toJSON?: unknown };
  if (typeof toJSON !== "function") return value;
  try {
    return Reflect.apply(toJSON, value, [""]) as unknown;
  } catch {
    return undefined;
  }
}

function within(found: Problem, step: string): Problem {
  found.path.push(step);
  return found;
}

function refuse(what: string, { path, text, hint }: Problem): PayloadInvalid {
  const place = path.toReversed().join("").slice(0, 120);
  return new PayloadInvalid(`${what}${place === "" ? "" : ` at ${place}`} ${text}.`, hint);
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
  // By hand: a regular expression that also matches strings overflows its stack on one of some megabytes.
  for (let at = 0; at < json.length;) {
    const quote = json.indexOf('"', at);
    const end = quote < 0 ? json.length : quote;
    for (const [text] of json.slice(at, end).matchAll(/-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g)) {
      if (!/^-?\d{16,}$/.test(text) || isKeptExactly(text)) continue;
      throw new PayloadInvalid(
        `${what} holds the integer ${text.slice(0, 40)}, which JavaScript cannot keep exactly.`,
        "Send it as a string.",
      );
    }
    at = quote < 0 ? end : endOfString(json, quote);
  }
}

function isKeptExactly(integer: string): boolean {
  const number = Number(integer);
  return Number.isFinite(number) && (Number.isSafeInteger(number) || BigInt(integer) === BigInt(number));
}

function endOfString(json: string, quote: number): number {
  for (let at = quote + 1; at < json.length; at += 1) {
    if (json[at] === "\\") at += 1;
    else if (json[at] === '"') return at + 1;
  }
  return json.length;
}
