// Lists page by page: how many are asked for, where the page begins, and where the next one does.
import { OptionInvalid } from "../errors.ts";

export function checkLimit(limit: unknown, most: number): number {
  if (typeof limit === "number" && Number.isInteger(limit) && limit >= 1 && limit <= most) return limit;
  throw new OptionInvalid(`limit is ${String(limit)}.`, `Give a whole number from 1 to ${most}.`);
}

/** Of lists in the order of a number that the database gave. */
export function checkNumberCursor(cursor: unknown): string | null {
  if (cursor === undefined) return null;
  if (typeof cursor === "string" && /^\d{1,18}$/.test(cursor)) return cursor;
  throw new OptionInvalid(`cursor is ${JSON.stringify(cursor)}.`, "Give what `next` of the last page was.");
}

/** Of what was found with one more than asked for: the page, and the cursor of the following one. */
export function cutPage<Row extends { id: string }>(
  found: readonly Row[],
  limit: number,
): { page: Row[]; next: string | null } {
  const page = found.slice(0, limit);
  return { page, next: found.length > limit ? page.at(-1)!.id : null };
}
