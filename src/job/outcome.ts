// How a run ends. A handler ends its attempt by returning or by throwing; here that becomes a value at once.
//
// Fatal, Gone, RetryAfter and Snooze are found through wrapping: an error whose `cause` is one of them means the same.
import { cleanText } from "./storable.ts";
import { durationMs, type Duration } from "../shared/duration.ts";
import { scrub } from "../shared/scrub.ts";

/** Dead at once: trying again cannot help. */
export class Fatal extends Error {
  override readonly name = "Fatal";
}

/** What the job was about no longer exists: the job is done, with nothing to do. */
export class Gone extends Error {
  override readonly name = "Gone";
}

/** Try again, not before this long; the attempt is used. */
export class RetryAfter extends Error {
  override readonly name = "RetryAfter";
  readonly delayMs: number;
  constructor(delay: Duration, message = "asked to be tried again later", options?: ErrorOptions) {
    super(message, options);
    this.delayMs = durationMs("RetryAfter", delay);
  }
}

/** Not now: the job goes back for this long and no attempt is used. */
export class Snooze extends Error {
  override readonly name = "Snooze";
  readonly delayMs: number;
  constructor(delay: Duration, message = "snoozed") {
    super(message);
    this.delayMs = durationMs("Snooze", delay);
  }
}

/** An error as it is stored: what looks like a secret is masked, and it is cut to a size. */
export interface ErrorRecord {
  name: string;
  message: string;
  stack?: string;
  code?: string;
  /** Why Holdfast ended the attempt, when it was not the handler's own error. */
  reason?: "crashed" | "timeout" | "invalid-payload" | "fatal" | "exhausted" | "expired";
  /** The same for errors of one cause; see job/fingerprint.ts. Of those that are stored. */
  fingerprint?: string;
  cause?: ErrorRecord;
}

export type Outcome =
  | { type: "done"; result: unknown }
  | { type: "gone"; error: ErrorRecord }
  | { type: "retry"; error: ErrorRecord; delayMs?: number }
  | { type: "dead"; error: ErrorRecord }
  | { type: "snooze"; delayMs: number }
  | { type: "release" }
  | { type: "cancelled"; error?: ErrorRecord };

const MAX_MESSAGE = 4_096;
const MAX_STACK = 8_192;
const MAX_CAUSES = 5;

/** A storable record of anything that was thrown: strings, null, objects with getters that throw. Never throws. */
export function recordError(thrown: unknown, reason?: ErrorRecord["reason"], depth = 0): ErrorRecord {
  const record: ErrorRecord = { name: "Error", message: "" };
  try {
    if (thrown !== null && typeof thrown === "object") {
      const source = thrown as { name?: unknown; message?: unknown; stack?: unknown; code?: unknown; cause?: unknown };
      record.name = cleanText(source.name ?? "Error", 200);
      record.message = clean(source.message ?? describe(thrown), MAX_MESSAGE);
      if (typeof source.stack === "string") record.stack = clean(source.stack, MAX_STACK);
      if (typeof source.code === "string" || typeof source.code === "number") record.code = cleanText(source.code, 100);
      if (source.cause !== undefined && source.cause !== null && depth < MAX_CAUSES) {
        record.cause = recordError(source.cause, undefined, depth + 1);
      }
    } else {
      record.message = clean(thrown, MAX_MESSAGE);
    }
  } catch {
    record.message = record.message || "(the error could not be read)";
  }
  if (reason) record.reason = reason;
  return record;
}

/** Scrubbed before it is cut: half a secret would not look like one. */
function clean(text: unknown, longest: number): string {
  return cleanText(scrub(cleanText(text, longest + 1_000)), longest);
}

function describe(thrown: object): string {
  try {
    return JSON.stringify(thrown) ?? Object.prototype.toString.call(thrown);
  } catch {
    return Object.prototype.toString.call(thrown);
  }
}

/** What a thrown value asks for. */
export function outcomeOf(thrown: unknown): Outcome {
  const error = recordError(thrown);
  try {
    for (const link of causes(thrown)) {
      if (link instanceof Fatal) return { type: "dead", error: { ...error, reason: "fatal" } };
      if (link instanceof Gone) return { type: "gone", error };
      if (link instanceof Snooze) return { type: "snooze", delayMs: link.delayMs };
      if (link instanceof RetryAfter) return { type: "retry", error, delayMs: link.delayMs };
    }
  } catch {
    // A proxy may refuse even to be asked what it is: then it is nothing that we know.
  }
  return { type: "retry", error };
}

function* causes(thrown: unknown): Generator {
  let link = thrown;
  for (let depth = 0; depth < 10 && link !== undefined && link !== null; depth += 1) {
    yield link;
    try {
      link = typeof link === "object" ? (link as { cause?: unknown }).cause : undefined;
    } catch {
      return;
    }
  }
}
