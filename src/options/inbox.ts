// The limits of the inbox: the one place they are in. Puts, the janitor, the HTTP API and the page of limits all take
// them from what is resolved here.
import { OptionInvalid } from "../errors.ts";
import { defined } from "../shared/defined.ts";
import { durationMs, type Duration } from "../shared/duration.ts";
import { refuseUnknown } from "../shared/refuse-unknown.ts";

/** Limits and retentions of the inbox; docs/inbox.md has the defaults. */
export interface InboxOptions {
  /** How long a parcel waits before it expires, unless its put says otherwise. */
  ttl?: Duration;
  /** The longest that a put may ask for. */
  maxTtl?: Duration;
  /** How long content stays readable after an ack (never beyond the expiry). */
  keepAcked?: Duration;
  /** How long a tombstone is kept, and with it the key of its put. */
  keepTombstones?: Duration;
  /** How often content is purged whose time is over. */
  purgeEvery?: Duration;
  /** A put that was silent for so long has broken off. */
  draftTimeout?: Duration;
  /** A parcel that waits for so long, or was fetched so long ago and not acked, is a sign that its recipient is stuck. */
  stuckAfter?: Duration;
  maxFileBytes?: number;
  maxFilesPerPut?: number;
  /** What one recipient may have open: bytes, and parcels. */
  quotaBytes?: number;
  quotaParcels?: number;
}

export interface ResolvedInboxOptions {
  ttlMs: number;
  maxTtlMs: number;
  keepAckedMs: number;
  keepTombstonesMs: number;
  purgeEveryMs: number;
  draftTimeoutMs: number;
  stuckAfterMs: number;
  maxFileBytes: number;
  maxFilesPerPut: number;
  quotaBytes: number;
  quotaParcels: number;
}

export const INBOX_DEFAULTS = {
  ttl: "24h",
  maxTtl: "30d",
  keepAcked: "1h",
  keepTombstones: "30d",
  purgeEvery: "5m",
  draftTimeout: "1h",
  stuckAfter: "15m",
  maxFileBytes: 104_857_600,
  maxFilesPerPut: 64,
  quotaBytes: 1_073_741_824,
  quotaParcels: 10_000,
} as const satisfies Required<InboxOptions>;

/** A tebibyte: more is a typing mistake. The numbers of its chunks, 256 KiB each, fit an integer by far. */
const LARGEST_FILE = 2 ** 40;

export function resolveInboxOptions(given: InboxOptions = {}): ResolvedInboxOptions {
  refuseUnknown("open().inbox", given, Object.keys(INBOX_DEFAULTS));
  const options: Required<InboxOptions> = { ...INBOX_DEFAULTS, ...defined(given) };
  const ms = (name: keyof InboxOptions, least = 0): number => {
    const value = durationMs(`open().inbox.${name}`, options[name]);
    if (value >= least) return value;
    throw new OptionInvalid(`open().inbox.${name} is "${String(options[name])}".`, `Give at least "${least}ms".`);
  };
  const count = (name: keyof InboxOptions, most: number): number => {
    const value = options[name];
    if (typeof value === "number" && Number.isInteger(value) && value >= 1 && value <= most) return value;
    throw new OptionInvalid(`open().inbox.${name} is ${String(value)}.`, `Give a whole number from 1 to ${most}.`);
  };
  const resolved = Object.freeze({
    ttlMs: ms("ttl", 1),
    maxTtlMs: ms("maxTtl", 1),
    keepAckedMs: ms("keepAcked"),
    keepTombstonesMs: ms("keepTombstones"),
    purgeEveryMs: ms("purgeEvery", 100),
    draftTimeoutMs: ms("draftTimeout", 1_000),
    stuckAfterMs: ms("stuckAfter", 1_000),
    maxFileBytes: count("maxFileBytes", LARGEST_FILE),
    maxFilesPerPut: count("maxFilesPerPut", 1_000),
    quotaBytes: count("quotaBytes", Number.MAX_SAFE_INTEGER),
    quotaParcels: count("quotaParcels", 1_000_000),
  });
  if (resolved.ttlMs > resolved.maxTtlMs) {
    throw new OptionInvalid(
      `open().inbox.ttl is "${options.ttl}", which is longer than maxTtl ("${options.maxTtl}").`,
      "Raise maxTtl, or give a shorter ttl.",
    );
  }
  return resolved;
}
