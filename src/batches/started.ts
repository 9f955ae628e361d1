// Says once that the first item of a batch runs. Nothing waits for it: settling an item says the same.
import type { Store } from "../store/sql.ts";
import { startBatch } from "../store/batches/start.ts";

const MOST_KNOWN = 10_000;

export function makeStarted(store: Store, onTrouble: (error: unknown) => void): (batchId: string) => void {
  const known = new Set<string>();
  return (batchId) => {
    if (known.has(batchId)) return;
    if (known.size >= MOST_KNOWN) known.clear();
    known.add(batchId);
    startBatch(store, batchId).catch(onTrouble);
  };
}
