// Items of a batch in pages of a size that memory can hold: an item may have megabytes, and then a page has few.
import type { ItemListOptions } from "../batches/batches.ts";
import type { Holdfast } from "../client/client.ts";
import type { BatchItem } from "../job/batch.ts";

export interface ItemPageRead {
  items: BatchItem[];
  /** Of their JSON, about. */
  bytes: number;
  next: string | null;
}

const FIRST = 8;
const MOST = 500;
const BYTES = 1_048_576;

/** Page by page from `cursor` on; no more than `limit` items. */
export async function* readItemPages(
  hf: Holdfast,
  id: string,
  { state, cursor, limit = Infinity }: ItemListOptions,
): AsyncGenerator<ItemPageRead, void> {
  let step = FIRST;
  let left = limit;
  for (let at = cursor ?? null, isFirst = true; left > 0 && (isFirst || at !== null); isFirst = false) {
    const options = { limit: Math.min(step, left), ...(state !== undefined && { state }), ...(at && { cursor: at }) };
    const { items, next } = await hf.batches.items(id, options);
    const bytes = items.reduce((sum, { payload, result }) => sum + sizeOf(payload) + sizeOf(result), 0);
    yield { items, bytes, next };
    at = next;
    left -= items.length;
    const fitting = Math.floor((items.length * BYTES) / Math.max(bytes, 1));
    step = Math.max(1, Math.min(items.length === 0 ? MOST : fitting, step * 8, MOST));
  }
}

const sizeOf = (value: unknown): number => (value === null || value === undefined ? 4 : JSON.stringify(value).length);
