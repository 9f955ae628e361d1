// One statement in flight; everything that arrives meanwhile forms the next one.
//
// No timers: an idle system pays nothing, and a busy one shares round trips and fsyncs. A caller's promise settles
// only after the batch with its own entry has. `lanes` allows more than one batch in flight.
import { AsyncLocalStorage } from "node:async_hooks";

export interface Coalescer<Entry, Result> {
  add(entry: Entry): Promise<Result>;
  /** Resolves when nothing is queued or in flight. */
  idle(): Promise<void>;
  readonly size: number;
}

export interface CoalesceOptions<Entry, Result> {
  /**
   * Results in the order of the entries. An Error in a place rejects that caller alone; a promise makes that caller
   * wait longer, but not the next statement.
   */
  run(entries: Entry[]): Promise<(Result | Error | Promise<Result>)[]>;
  maxEntries: number;
  /** Upper bound on the sum of `weigh` in one batch (bytes); one entry alone may exceed it. */
  maxWeight?: number;
  weigh?(entry: Entry): number;
  lanes?: number;
}

interface Waiting<Entry, Result> {
  entry: Entry;
  resolve(result: Result | Promise<Result>): void;
  reject(error: unknown): void;
}

/**
 * Statements are sent from the context in which the coalescer was made: that of the caller who happened to be first
 * (a transaction, say) is not that of the others.
 */
export function makeCoalescer<Entry, Result>(options: CoalesceOptions<Entry, Result>): Coalescer<Entry, Result> {
  const { run, maxEntries, maxWeight = Infinity, weigh = () => 0, lanes = 1 } = options;
  let queue: Waiting<Entry, Result>[] = [];
  let inFlight = 0;
  let scheduled = false;
  let size = 0;
  let idleWaiters: (() => void)[] = [];

  function takeBatch(): Waiting<Entry, Result>[] {
    let count = 0;
    let weight = 0;
    while (count < queue.length && count < maxEntries) {
      const next = weigh(queue[count]!.entry);
      if (count > 0 && weight + next > maxWeight) break;
      weight += next;
      count += 1;
    }
    if (count === queue.length) {
      const all = queue;
      queue = [];
      return all;
    }
    return queue.splice(0, count);
  }

  function leave(count: number): void {
    size -= count;
    if (size > 0) return;
    const waiters = idleWaiters;
    idleWaiters = [];
    for (const wake of waiters) wake();
  }

  async function flush(): Promise<void> {
    const batch = takeBatch();
    inFlight += 1;
    let settled = batch.length;
    try {
      const results = await run(batch.map((waiting) => waiting.entry));
      for (const [index, waiting] of batch.entries()) {
        const result = results[index]!;
        if (result instanceof Error) waiting.reject(result);
        else waiting.resolve(result);
        if (!(result instanceof Promise)) continue;
        settled -= 1;
        void result.then(
          () => leave(1),
          () => leave(1),
        );
      }
    } catch (error) {
      for (const waiting of batch) waiting.reject(error);
    } finally {
      inFlight -= 1;
      pump();
      leave(settled);
    }
  }

  const outside = AsyncLocalStorage.snapshot();

  function pump(): void {
    while (queue.length > 0 && inFlight < lanes) void outside(flush);
  }

  return {
    add(entry) {
      size += 1;
      return new Promise<Result>((resolve, reject) => {
        queue.push({ entry, resolve, reject });
        if (inFlight >= lanes || scheduled) return;
        // Calls made in the same turn of the event loop share the first statement.
        scheduled = true;
        queueMicrotask(() => {
          scheduled = false;
          pump();
        });
      });
    },
    idle() {
      return size === 0 ? Promise.resolve() : new Promise((resolve) => idleWaiters.push(resolve));
    },
    get size() {
      return size;
    },
  };
}
