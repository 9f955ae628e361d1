// UUIDv7 made here, not by the database: an enqueue whose reply was lost is sent again under the same id.
// Ids made by one process in one millisecond still sort in the order they were made (a 12-bit counter in rand_a).
import { randomFillSync } from "node:crypto";

const POOL_BYTES = 8 * 512;
const pool = Buffer.alloc(POOL_BYTES);
let poolOffset = POOL_BYTES;
/** The pool as hexadecimal text: cutting it is cheaper than turning bytes into text one by one. */
let poolHex = "";
let lastMs = 0;
let counter = 0;
let prefix = "";

const COUNTERS: string[] = Array.from({ length: 0x1000 }, (_, count) => count.toString(16).padStart(3, "0"));
const VARIANTS = ["8", "9", "a", "b"];

function randomOffset(): number {
  if (poolOffset >= POOL_BYTES) {
    randomFillSync(pool);
    poolHex = pool.toString("hex");
    poolOffset = 0;
  }
  const offset = poolOffset;
  poolOffset += 8;
  return offset;
}

export function uuidv7(): string {
  const now = Date.now();
  if (now > lastMs) {
    lastMs = now;
    counter = 0;
    prefix = "";
  } else if (++counter > 0xfff) {
    // 4,096 ids in one millisecond, or a clock that went back: run ahead of the clock rather than out of order.
    lastMs += 1;
    counter = 0;
    prefix = "";
  }
  if (prefix === "") {
    const time = lastMs.toString(16).padStart(12, "0");
    prefix = `${time.slice(0, 8)}-${time.slice(8)}-7`;
  }
  const at = 2 * randomOffset();
  const variant = VARIANTS[pool[at / 2]! & 3]!;
  return `${prefix}${COUNTERS[counter]!}-${variant}${poolHex.slice(at + 1, at + 4)}-${poolHex.slice(at + 4, at + 16)}`;
}

const FORM = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

export function isUuid(value: unknown): value is string {
  return typeof value === "string" && FORM.test(value);
}

/** A fencing token: 63 random bits, as text, because JavaScript's numbers stop at 53. */
export function randomToken(): string {
  const at = randomOffset();
  return (pool.readBigUInt64BE(at) >> 1n).toString();
}
