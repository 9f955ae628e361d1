import { expect, test, vi } from "vitest";
import type * as Uuid from "#src/shared/uuid.js";

// A copy of its own: the other one may have made ids for a file whose clock was years ahead, and stays there.
const { isUuid, randomToken, uuidv7 } = (await import(
  new URL("../../dist/shared/uuid.js?own", import.meta.url).href
)) as typeof Uuid;

test("ids of one process are UUIDv7s in the order they were made, even many in one millisecond", () => {
  const ids = Array.from({ length: 50_000 }, uuidv7);
  expect(new Set(ids).size).toBe(ids.length);
  expect(ids).toEqual(ids.toSorted());
  for (const id of ids.slice(0, 100)) {
    expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    expect(isUuid(id)).toBe(true);
  }
});

test("an id begins with the time it was made", () => {
  const ms = Number.parseInt(uuidv7().replaceAll("-", "").slice(0, 12), 16);
  // 50,000 ids in a row run a little ahead of the clock.
  expect(Math.abs(ms - Date.now())).toBeLessThan(1_000);
});

test("a clock that goes back does not break the order", () => {
  const before = uuidv7();
  const now = vi.spyOn(Date, "now").mockReturnValue(Date.now() - 3_600_000);
  try {
    expect(uuidv7() > before).toBe(true);
  } finally {
    now.mockRestore();
  }
});

test.each(["", "x", "0192a1b2", "0192a1b2-0000-7000-8000-00000000000g", 7, null, undefined, {}])(
  "%j is no id",
  (value) => {
    expect(isUuid(value)).toBe(false);
  },
);

test("tokens are positive numbers of 63 bits, written as text", () => {
  const tokens = Array.from({ length: 10_000 }, randomToken);
  expect(new Set(tokens).size).toBe(tokens.length);
  for (const token of tokens) {
    expect(token).toMatch(/^\d+$/);
    expect(BigInt(token) < 2n ** 63n).toBe(true);
  }
  // Not all of them small: the upper bits are used.
  expect(tokens.some((token) => BigInt(token) > 2n ** 62n)).toBe(true);
});
