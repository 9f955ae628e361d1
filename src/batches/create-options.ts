// What a caller says about a new batch, checked before anything is stored.
import { OptionInvalid } from "../errors.ts";
import type { Transaction } from "../job/caller-transaction.ts";
import { type AnyBatchKind, checkConcurrency } from "../job/define-batch.ts";
import { checkAttempts, checkName } from "../job/define-job.ts";
import { toStorableJson } from "../job/storable.ts";
import { checkInboxName } from "../shared/inbox-name.ts";
import { refuseUnknown } from "../shared/refuse-unknown.ts";
import { uuidv7 } from "../shared/uuid.ts";
import type { NewBatch } from "../store/batches/create.ts";

/** What may be said about a batch when it is made. */
export interface CreateBatchOptions {
  /** One key is one batch of its kind and owner. Called again with the same key and items, it goes on where it stopped. */
  key?: string;
  /** Whose it is: what is handed back goes into this inbox, and callers bound to an owner see only theirs. */
  owner?: string;
  /** How many items there will be in the end: it is not done before, and closes by itself then. */
  total?: number;
  /** Leave it open for others to add items; `hf.batches.close` ends that. */
  open?: boolean;
  concurrency?: number;
  attempts?: number;
  /** -100 to 100; higher runs sooner. */
  priority?: number;
  /** A job that is inserted in the commit in which the batch is done. Its payload is `{ batch, payload }`. */
  onDone?: { kind: string; payload?: unknown; queue?: string };
  /** Kept with it, for its owner. */
  fields?: Record<string, unknown>;
  /** Commits or rolls back with the caller's own rows. */
  tx?: Transaction | undefined;
}

const KNOWN = ["key", "owner", "total", "open", "concurrency", "attempts", "priority", "onDone", "fields", "tx"];
const MAX_TEXT = 500;

export function readCreateOptions(kind: AnyBatchKind, options: CreateBatchOptions): NewBatch {
  const where = "batches.create()";
  refuseUnknown(where, options, KNOWN);
  const { total, priority = 0, onDone, fields = {}, open } = options;
  if (total !== undefined && (!Number.isSafeInteger(total) || total < 0)) {
    throw new OptionInvalid(`${where} total is ${String(total)}.`, "Give a whole number of at least 0.");
  }
  if (!Number.isInteger(priority) || priority < -100 || priority > 100) {
    throw new OptionInvalid(`${where} priority is ${String(priority)}.`, "Give a whole number from -100 to 100.");
  }
  if (open !== undefined && typeof open !== "boolean") {
    throw new OptionInvalid(`${where} open is ${String(open)}.`, "Give true or false.");
  }
  if (onDone !== undefined) {
    refuseUnknown(`${where} onDone`, onDone, ["kind", "payload", "queue"]);
    checkName(`${where} onDone.kind`, onDone.kind);
    if (onDone.queue !== undefined) checkName(`${where} onDone.queue`, onDone.queue);
  }
  if (fields === null || typeof fields !== "object" || Array.isArray(fields)) {
    throw new OptionInvalid(`${where} fields is not an object.`, 'Give names and values: { title: "…" }.');
  }
  const { batch } = kind;
  return {
    id: uuidv7(),
    kind: kind.kind,
    queue: kind.queue,
    rank: priority === 0 ? 0 : -priority,
    attempts: options.attempts === undefined ? kind.attempts : checkAttempts(`${where} attempts`, options.attempts),
    concurrency:
      options.concurrency === undefined
        ? batch.concurrency
        : checkConcurrency(`${where} concurrency`, options.concurrency),
    outcomes: JSON.stringify(batch.outcomes),
    onDone: onDone === undefined ? null : toStorableJson(`${where} onDone`, onDone),
    fields: toStorableJson(`${where} fields`, fields),
    owner: options.owner === undefined ? null : checkInboxName(`${where} owner`, options.owner),
    key: options.key === undefined ? null : checkText(`${where} key`, options.key),
    total: total ?? null,
    keepMs: batch.keepMs,
    keepKeyMs: kind.keepKeysMs,
    openMs: batch.openMs,
    handMs: batch.handMs,
    handTries: batch.handTries,
    ackedAs: batch.ackedAs,
  };
}

export function checkText(what: string, value: unknown): string {
  if (typeof value !== "string" || value === "" || value.length > MAX_TEXT) {
    const shown = typeof value === "string" ? `${value.length} characters long` : String(value);
    throw new OptionInvalid(`${what} is ${shown}.`, `Give a text of 1 to ${MAX_TEXT} characters.`);
  }
  if (value.includes("\0") || !value.isWellFormed()) {
    throw new OptionInvalid(`${what} holds a NUL character or half of a surrogate pair.`, "Use plain text.");
  }
  return value;
}
