// From what a caller gives to the row of a job: every option is checked, and what is refused is named with its value.
import { OptionInvalid } from "../errors.ts";
import type { Transaction } from "../job/caller-transaction.ts";
import { type AnyJobKind, checkAttempts, checkName, parsePayload } from "../job/define-job.ts";
import { toStorableJson } from "../job/storable.ts";
import { durationMs, type Duration } from "../shared/duration.ts";
import { refuseUnknown } from "../shared/refuse-unknown.ts";
import { uuidv7 } from "../shared/uuid.ts";
import type { NewJob } from "../store/jobs/insert.ts";

/** What may be said about one job when it is enqueued. */
export interface EnqueueOptions {
  /** One key is one job for the key's life, even after the job was purged. Scoped by kind. */
  key?: string;
  /** One open job per key: a pending one takes the newest payload, a running one runs again afterwards. */
  coalesce?: string;
  /** Jobs of one group run one at a time, in the order they were accepted. */
  group?: string;
  runAt?: Date | string;
  delay?: Duration;
  /** -100 to 100; higher runs sooner. */
  priority?: number;
  queue?: string;
  attempts?: number;
  /** A job that is inserted in the commit that marks this one dead. Its payload is `{ job, payload }`. */
  onDead?: { kind: string; payload?: unknown; queue?: string };
  headers?: Record<string, string>;
  /** Commits or rolls back with the caller's own rows. */
  tx?: Transaction | undefined;
}

/** One job of `enqueueMany`: its payload, and the options of `enqueue`. */
export interface EnqueueRow<Input> extends Omit<EnqueueOptions, "tx"> {
  payload: Input;
}

const KNOWN = [
  "key",
  "coalesce",
  "group",
  "runAt",
  "delay",
  "priority",
  "queue",
  "attempts",
  "onDead",
  "headers",
  "tx",
];

/** Checks the options and makes the row. Written out field by field: this runs for every job. */
export function toNewJob(kind: AnyJobKind, payload: unknown, options: EnqueueOptions, row: number | undefined): NewJob {
  const job: NewJob = {
    id: uuidv7(),
    kind: kind.kind,
    queue: kind.queue,
    rank: 0,
    attempts: kind.attempts,
    payload: payloadJson(kind, payload, row),
  };
  let isPlain = true;
  for (const name in options) if (name !== "payload" || row === undefined) isPlain = false;
  if (!isPlain) applyOptions(job, kind, options, row);
  return job;
}

function payloadJson(kind: AnyJobKind, payload: unknown, row: number | undefined): string {
  try {
    return toStorableJson("The payload", payload);
  } catch (error) {
    if (error instanceof Error) error.message = `${whereIs(row)} of ${kind.kind}: ${error.message}`;
    throw error;
  }
}

function applyOptions(job: NewJob, kind: AnyJobKind, options: EnqueueOptions, row: number | undefined): void {
  const where = whereIs(row);
  refuseUnknown(where, options, row === undefined ? KNOWN : ["payload", ...KNOWN]);
  if (options.priority !== undefined) {
    const { priority } = options;
    if (!Number.isInteger(priority) || priority < -100 || priority > 100) {
      throw new OptionInvalid(`${where} priority is ${String(priority)}.`, "Give a whole number from -100 to 100.");
    }
    job.rank = priority === 0 ? 0 : -priority;
  }
  if (options.queue !== undefined) job.queue = checkName(`${where} queue`, options.queue);
  if (options.attempts !== undefined) job.attempts = checkAttempts(`${where} attempts`, options.attempts);
  if (options.runAt !== undefined) {
    if (options.delay !== undefined) {
      throw new OptionInvalid(`${where} has both runAt and delay.`, "Give one of them.");
    }
    const at = new Date(options.runAt);
    if (Number.isNaN(at.getTime()) || at.getUTCFullYear() > 9_999 || at.getUTCFullYear() < 1_970) {
      throw new OptionInvalid(`${where} runAt is ${String(options.runAt)}.`, "Give a Date or an ISO 8601 text.");
    }
    job.runAt = at.toISOString();
  }
  if (options.delay !== undefined) job.delayMs = durationMs(`${where} delay`, options.delay);
  if (options.key !== undefined) {
    job.key = checkKey(`${where} key`, options.key);
    job.keepKeyMs = kind.keepKeysMs;
  }
  if (options.group !== undefined) job.group = checkKey(`${where} group`, options.group);
  if (options.coalesce !== undefined) {
    job.coalesceKey = checkKey(`${where} coalesce`, options.coalesce);
    if (job.key !== undefined || job.group !== undefined) {
      throw new OptionInvalid(
        `${where} has coalesce together with ${job.key !== undefined ? "key" : "group"}.`,
        "A key accepts once for ever and a group keeps order; coalescing replaces what waits. Choose one.",
      );
    }
  }
  if (options.onDead !== undefined) {
    refuseUnknown(`${where} onDead`, options.onDead, ["kind", "payload", "queue"]);
    const { kind: followUp, payload, queue } = options.onDead;
    checkName(`${where} onDead.kind`, followUp);
    if (queue !== undefined) checkName(`${where} onDead.queue`, queue);
    job.onDead = toStorableJson(`${where} onDead`, { kind: followUp, payload, queue });
  }
  if (options.headers !== undefined) job.headers = toStorableJson(`${where} headers`, options.headers);
}

const MAX_KEY_LENGTH = 500;

export function checkKey(what: string, value: unknown): string {
  if (typeof value !== "string" || value === "" || value.length > MAX_KEY_LENGTH) {
    throw new OptionInvalid(
      `${what} is ${typeof value === "string" ? `${value.length} characters long` : String(value)}.`,
      `Give a text of 1 to ${MAX_KEY_LENGTH} characters.`,
    );
  }
  if (value.includes("\0") || !value.isWellFormed()) {
    throw new OptionInvalid(`${what} holds a NUL character or half of a surrogate pair.`, "Use plain text.");
  }
  return value;
}

/**
 * What is stored is what was given, and it is checked as it will be at the claim: a schema may change its type, and a
 * second change of what came out of the first would fail.
 */
export async function checkPayload(kind: AnyJobKind, json: string, row?: number): Promise<void> {
  try {
    await parsePayload(kind, JSON.parse(json));
  } catch (error) {
    if (row !== undefined && error instanceof Error) error.message = `${whereIs(row)}: ${error.message}`;
    throw error;
  }
}

/** Only made for a message: this is not to be paid for every row. */
const whereIs = (row: number | undefined): string => (row === undefined ? "enqueue()" : `enqueueMany() row ${row}`);
