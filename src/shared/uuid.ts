// UUIDv7 made here, not by the database: an enqueue whose reply was lost is sent again under the same id.
// Ids made by one process in one millisecond still sort in the order they were made (a 12-bit counter in rand_a).
import { randomFillSync } from "node:crypto";

const POOL_BYTES = 8 * 512;
const pool = Buffer.alloc(POOL_BYTES);
let poolOffset = POOL_BYTES;
let lastMs = 0;
let counter = 0;

const HEX: string[] = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));

function randomOffset(): number {
  if (poolOffset >= POOL_BYTES) {
    randomFillSync(pool);
    poolOffset = 0;
  }
  const offset = poolOffset;
  poolOffset += 8;
  return offset;
}

export function uuidv7(): string {
  let ms = Date.now();
  if (ms > lastMs) {
    lastMs = ms;
    counter = 0;
  } else if (++counter > 0xfff) {
    // 4,096 ids in one millisecond, or a clock that went back: run ahead of the clock rather than out of order.
    lastMs += 1;
    counter = 0;
  }
  ms = lastMs;
  const time = ms.toString(16).padStart(12, "0");
  const at = randomOffset();
  const byte = (index: number): string => HEX[pool[at + index]!]!;
  const variant = HEX[(pool[at]! & 0x3f) | 0x80]!;
  return `${time.slice(0, 8)}-${time.slice(8)}-7${counter.toString(16).padStart(3, "0")}-${variant}${byte(1)}-${byte(2)}${byte(3)}${byte(4)}${byte(5)}${byte(6)}${byte(7)}`;
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
