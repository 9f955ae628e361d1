// What people told this worker: which queues are paused, and whether it takes no more jobs, or is to end. It asks at the start, with
// every beat of the worker, and when it is woken without a reason; asking is a read of two tiny tables. A claim does not
// look at it: what was claimed of a paused queue is given back and set aside, once, and no claim lists it until the
// queue is resumed.
import { performance } from "node:perf_hooks";
import { makeCoalescer } from "../shared/coalesce.ts";
import { readOrders } from "../store/workers/drain.ts";
import type { Store } from "../store/sql.ts";

export interface Orders {
  isPaused(queue: string): boolean;
  /** It takes no more jobs. */
  readonly drains: boolean;
  /** Asks what it is to do now. Never throws. */
  learn(): Promise<void>;
}

export interface OrdersInput {
  store: Store;
  workerId: string;
  /** A queue was resumed: what was set aside lies behind every watermark. */
  onResumed(): void;
  /** It may take jobs again. */
  onUndrained(): void;
  /** It is to end; told once. */
  onStopAsked(): void;
  onTrouble(error: unknown): void;
}

/** Jobs of a resumed queue are let in batch by batch. */
const RESUMING_MS = 10_000;

export function makeOrders({ store, workerId, onResumed, onUndrained, onStopAsked, onTrouble }: OrdersInput): Orders {
  let paused: ReadonlySet<string> = new Set();
  let drains = false;
  let isToStop = false;
  let resumedAt = -Infinity;
  const questions = makeCoalescer<undefined, void>({
    maxEntries: 1_000,
    async run(asked) {
      try {
        const orders = await readOrders(store, workerId);
        const now = new Set(orders.paused);
        if ([...paused].some((queue) => !now.has(queue))) resumedAt = performance.now();
        paused = now;
        if (performance.now() - resumedAt < RESUMING_MS) onResumed();
        const isFree = drains && !orders.drains;
        drains = orders.drains;
        if (isFree) onUndrained();
        if (orders.stops && !isToStop) {
          isToStop = true;
          onStopAsked();
        }
      } catch (error) {
        onTrouble(error);
      }
      return asked.map(() => undefined);
    },
  });
  return {
    isPaused: (queue) => paused.size > 0 && paused.has(queue),
    get drains() {
      return drains;
    },
    learn: () => questions.add(undefined),
  };
}
