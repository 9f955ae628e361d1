// What a put says about its parcels, checked before anything is stored.
import { OptionInvalid } from "../errors.ts";
import { checkName } from "../job/define-job.ts";
import type { Transaction } from "../job/caller-transaction.ts";
import { toStorableJson } from "../job/storable.ts";
import type { ResolvedInboxOptions } from "../options/inbox.ts";
import { durationMs, formatDuration, type Duration } from "../shared/duration.ts";
import { refuseUnknown } from "../shared/refuse-unknown.ts";
import type { Content, Json } from "./content.ts";
import { safeName } from "./safe-name.ts";
import { safeType } from "./safe-type.ts";

/** What may be said about one file when it is put. */
export interface FileOptions {
  /** Made safe: letters, digits, `.`, `_`, `-`, at most 100 of them. */
  name?: string;
  /** What it is, such as "image/png". A remark: nothing is decided by it. */
  type?: string;
  ttl?: Duration;
  /** One key is one parcel of the recipient, for as long as its tombstone is kept. */
  key?: string;
  /** Kept with the parcel, for whoever fetches it. */
  meta?: Json;
  /** If known beforehand: content with another hash is refused. In hexadecimal. */
  sha256?: string;
  /** Of a stream, if known beforehand: what cannot fit is refused before it is read, and a stream that ends early too. */
  size?: number;
  /** A job that is inserted in the commit that ends the parcel unacked. Its payload is `{ parcel, payload }`. */
  onExpired?: { kind: string; payload?: unknown; queue?: string };
}

/** The options of one `put`: those of a file, and the caller's transaction. */
export interface PutOptions extends FileOptions {
  /** Commits or rolls back with the caller's own rows. */
  tx?: Transaction | undefined;
}

/** One file of `putMany`: its content, and what may be said about it. */
export interface PutFile extends FileOptions {
  content: Content;
}

export interface FileFacts {
  name: string;
  /** undefined: what the content itself says. */
  type: string | undefined;
  ttlMs: number;
  key: string | null;
  sha256: string | null;
  size: number | null;
  meta: string | null;
  onExpired: string | null;
}

const KNOWN = ["name", "type", "ttl", "key", "meta", "sha256", "size", "onExpired"];

export function readFileOptions(where: string, options: FileOptions, limits: ResolvedInboxOptions): FileFacts {
  refuseUnknown(where, options, [...KNOWN, "tx", "content"]);
  const { name = "file", type, meta, onExpired } = options;
  if (typeof name !== "string" || name === "") throw new OptionInvalid(`${where} name is empty.`, "Give a file name.");
  if (type !== undefined && typeof type !== "string") {
    throw new OptionInvalid(`${where} type is ${String(type)}.`, 'Give a content type, such as "image/png".');
  }
  if (onExpired !== undefined) {
    checkName(`${where} onExpired.kind`, onExpired.kind);
    if (onExpired.queue !== undefined) checkName(`${where} onExpired.queue`, onExpired.queue);
  }
  return {
    name: safeName(name),
    type: type === undefined ? undefined : safeType(type),
    ttlMs: checkTtl(where, options.ttl, limits),
    key: options.key === undefined ? null : checkKey(where, options.key),
    sha256: options.sha256 === undefined ? null : checkHash(where, options.sha256),
    size: options.size === undefined ? null : checkSize(where, options.size),
    meta: meta === undefined ? null : toStorableJson(`${where} meta`, meta),
    onExpired: onExpired === undefined ? null : toStorableJson(`${where} onExpired`, onExpired),
  };
}

function checkTtl(where: string, given: unknown, { ttlMs, maxTtlMs }: ResolvedInboxOptions): number {
  if (given === undefined) return ttlMs;
  const ms = durationMs(`${where} ttl`, given);
  if (ms >= 1 && ms <= maxTtlMs) return ms;
  throw new OptionInvalid(
    `${where} ttl is ${JSON.stringify(given)}.`,
    `Give a duration above zero and up to ${formatDuration(maxTtlMs)} (the option maxTtl).`,
  );
}

function checkKey(where: string, key: unknown): string {
  const isText = typeof key === "string" && key.length >= 1 && key.length <= 500;
  if (isText && !key.includes("\0") && key.isWellFormed()) return key;
  const shown = typeof key === "string" ? `${key.length} characters long, or not plain text` : String(key);
  throw new OptionInvalid(`${where} key is ${shown}.`, "Give a text of 1 to 500 characters.");
}

function checkHash(where: string, hash: unknown): string {
  if (typeof hash === "string" && /^[0-9a-f]{64}$/i.test(hash)) return hash.toLowerCase();
  throw new OptionInvalid(`${where} sha256 is not a SHA-256 hash.`, "Give 64 hexadecimal digits.");
}

function checkSize(where: string, size: unknown): number {
  if (typeof size === "number" && Number.isSafeInteger(size) && size >= 0) return size;
  throw new OptionInvalid(`${where} size is ${String(size)}.`, "Give a whole number of bytes.");
}
