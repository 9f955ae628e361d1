// Which queues are paused, as this worker knows. It asks at the start, with every beat of the worker, and when it is woken
// without a reason; asking is a read of a tiny table. A claim does not look at it: what was claimed of a paused queue is
// given back and set aside, once, and no claim lists it until the queue is resumed.
import { performance } from "node:perf_hooks";
import { makeCoalescer } from "../shared/coalesce.ts";
import { pausedQueues } from "../store/queues/pause.ts";
import type { Store } from "../store/sql.ts";

export interface Paused {
  has(queue: string): boolean;
  /** Asks which queues are paused now. Never throws. */
  learn(): Promise<void>;
}

export interface PausedInput {
  store: Store;
  /** A queue was resumed: what was set aside lies behind every watermark. */
  onResumed(): void;
  onTrouble(error: unknown): void;
}

/** Jobs of a resumed queue are let in batch by batch. */
const RESUMING_MS = 10_000;

export function makePaused({ store, onResumed, onTrouble }: PausedInput): Paused {
  let paused: ReadonlySet<string> = new Set();
  let resumedAt = -Infinity;
  const questions = makeCoalescer<undefined, void>({
    maxEntries: 1_000,
    async run(asked) {
      try {
        const now = new Set((await pausedQueues(store)).map(({ queue }) => queue));
        if ([...paused].some((queue) => !now.has(queue))) resumedAt = performance.now();
        paused = now;
        if (performance.now() - resumedAt < RESUMING_MS) onResumed();
      } catch (error) {
        onTrouble(error);
      }
      return asked.map(() => undefined);
    },
  });
  return {
    has: (queue) => paused.size > 0 && paused.has(queue),
    learn: () => questions.add(undefined),
  };
}
