// One statement in flight; everything that arrives meanwhile forms the next one.
//
// No timers: an idle system pays nothing, and a busy one shares round trips and fsyncs. A caller's promise settles
// only after the batch with its own entry has. `lanes` allows more than one batch in flight; entries that must keep their
// order say so by `turnsOf`.
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
  /** What the entry has to keep its order with: nothing, if it is not given. */
  turnsOf?(entry: Entry): readonly Turn[];
}

/**
 * Entries with a turn of the same name are never in two batches at once, and one that waits longer keeps those behind it waiting: they
 * are run in the order in which they were added. `isAlone`: at most one of them in a batch.
 */
export interface Turn {
  name: string;
  isAlone?: boolean;
}

const NO_TURNS: readonly Turn[] = [];

interface Waiting<Entry, Result> {
  entry: Entry;
  turns: readonly Turn[];
  resolve(result: Result | Promise<Result>): void;
  reject(error: unknown): void;
}

/**
 * Statements are sent from the context in which the coalescer was made: that of the caller who happened to be first
 * (a transaction, say) is not that of the others.
 */
export function makeCoalescer<Entry, Result>(options: CoalesceOptions<Entry, Result>): Coalescer<Entry, Result> {
  const { run, maxEntries, maxWeight = Infinity, weigh = () => 0, lanes = 1, turnsOf } = options;
  let queue: Waiting<Entry, Result>[] = [];
  let inFlight = 0;
  let scheduled = false;
  let size = 0;
  let idleWaiters: (() => void)[] = [];
  /** Names of turns → entries that have one now. */
  const busy = new Map<string, number>();

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

  /** The same for entries with turns: those that have to wait stay in the queue, in their order. */
  function takeInTurn(): Waiting<Entry, Result>[] {
    const batch: Waiting<Entry, Result>[] = [];
    let left: Waiting<Entry, Result>[] = [];
    const inBatch = new Set<string>();
    const passedOver = new Set<string>();
    let weight = 0;
    for (const [index, waiting] of queue.entries()) {
      const mustWait = ({ name, isAlone }: Turn): boolean =>
        busy.has(name) || passedOver.has(name) || (isAlone === true && inBatch.has(name));
      if (waiting.turns.some(mustWait)) {
        for (const { name } of waiting.turns) passedOver.add(name);
        left.push(waiting);
        continue;
      }
      const next = weigh(waiting.entry);
      if (batch.length >= maxEntries || (batch.length > 0 && weight + next > maxWeight)) {
        left = left.concat(queue.slice(index));
        break;
      }
      weight += next;
      batch.push(waiting);
      for (const { name } of waiting.turns) inBatch.add(name);
    }
    queue = left;
    for (const { turns } of batch) for (const { name } of turns) busy.set(name, (busy.get(name) ?? 0) + 1);
    return batch;
  }

  function endTurns({ turns }: Waiting<Entry, Result>): void {
    for (const { name } of turns) {
      const others = busy.get(name)! - 1;
      if (others > 0) busy.set(name, others);
      else busy.delete(name);
    }
  }

  function leave(count: number): void {
    size -= count;
    if (size > 0) return;
    const waiters = idleWaiters;
    idleWaiters = [];
    for (const wake of waiters) wake();
  }

  async function flush(batch: Waiting<Entry, Result>[]): Promise<void> {
    inFlight += 1;
    let settled = batch.length;
    const late = new Set<Waiting<Entry, Result>>();
    try {
      const results = await run(batch.map((waiting) => waiting.entry));
      for (const [index, waiting] of batch.entries()) {
        const result = results[index]!;
        if (result instanceof Error) waiting.reject(result);
        else waiting.resolve(result);
        if (!(result instanceof Promise)) continue;
        settled -= 1;
        late.add(waiting);
        const over = (): void => {
          endTurns(waiting);
          pumpSoon();
          leave(1);
        };
        void result.then(over, over);
      }
    } catch (error) {
      for (const waiting of batch) waiting.reject(error);
    } finally {
      inFlight -= 1;
      for (const waiting of batch) if (!late.has(waiting)) endTurns(waiting);
      pump();
      leave(settled);
    }
  }

  const outside = AsyncLocalStorage.snapshot();

  function pump(): void {
    while (queue.length > 0 && inFlight < lanes) {
      const batch = turnsOf ? takeInTurn() : takeBatch();
      if (batch.length === 0) return;
      void outside(flush, batch);
    }
  }

  /** Calls made in the same turn of the event loop share the first statement. */
  function pumpSoon(): void {
    if (inFlight >= lanes || scheduled) return;
    scheduled = true;
    queueMicrotask(() => {
      scheduled = false;
      pump();
    });
  }

  return {
    add(entry) {
      size += 1;
      const turns = turnsOf?.(entry) ?? NO_TURNS;
      return new Promise<Result>((resolve, reject) => {
        queue.push({ entry, turns, resolve, reject });
        // Nothing can be taken that could not be before: whoever has its turn will look when that ends.
        if (!turns.some(({ name }) => busy.has(name))) pumpSoon();
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
