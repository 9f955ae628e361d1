// Time that only passes when it is told to. While it is installed, timers, clocks and chance of everything in this process
// are its own: a simulated hour takes no time, and the same seed takes the same course.
//
// Timers belong to the process (see World) in whose context they were made: those of a frozen process wait, those of a
// dead one never ring.
import { AsyncLocalStorage } from "node:async_hooks";
import type { Random } from "../../support/random.ts";

export interface Simulated {
  readonly name: string;
  isAlive: boolean;
  /** Nothing of it moves before. */
  frozenUntil: number;
}

interface Timer {
  id: number;
  at: number;
  order: number;
  every: number | undefined;
  ring: () => void;
  of: Simulated | undefined;
}

const GLOBALS = ["setTimeout", "clearTimeout", "setInterval", "clearInterval", "setImmediate"] as const;
const realImmediate = setImmediate;

/** Lets every promise that can go on do so. */
export const breathe = (): Promise<void> => new Promise((resolve) => void realImmediate(resolve));

/** One for all: each that is ever used costs every promise of the process a little, for ever. */
const context = new AsyncLocalStorage<Simulated>();

export class VirtualTime {
  readonly context = context;
  now: number;
  readonly #timers = new Map<number, Timer>();
  #ids = 0;
  #undo: (() => void)[] = [];

  constructor(now: number) {
    this.now = now;
  }

  install(random: Random): void {
    const swap = (target: object, name: string, value: unknown): void => {
      const before = Object.getOwnPropertyDescriptor(target, name);
      Object.defineProperty(target, name, { value, configurable: true, writable: true });
      this.#undo.push(() => {
        if (before) Object.defineProperty(target, name, before);
        else Reflect.deleteProperty(target, name);
      });
    };
    const add = (ring: () => void, ms: unknown, every?: number): object => {
      const id = (this.#ids += 1);
      const wait = Math.max(0, Number(ms) || 0);
      this.#timers.set(id, { id, at: this.now + wait, order: id, every, ring, of: this.context.getStore() });
      const handle = {
        id,
        ref: () => handle,
        unref: () => handle,
        hasRef: () => true,
        refresh: () => {
          const timer = this.#timers.get(id);
          if (timer) timer.at = this.now + wait;
          return handle;
        },
        close: () => this.#timers.delete(id),
        [Symbol.toPrimitive]: () => id,
      };
      return handle;
    };
    const drop = (handle: { id?: number } | undefined): void => {
      if (handle?.id !== undefined) this.#timers.delete(handle.id);
    };
    type Call = (...args: unknown[]) => void;
    const made: Record<(typeof GLOBALS)[number], unknown> = {
      setTimeout: (call: Call, ms: unknown, ...args: unknown[]) => add(() => call(...args), ms),
      setInterval: (call: Call, ms: unknown, ...args: unknown[]) =>
        add(() => call(...args), ms, Math.max(1, Number(ms) || 1)),
      setImmediate: (call: Call, ...args: unknown[]) => add(() => call(...args), 0),
      clearTimeout: drop,
      clearInterval: drop,
    };
    for (const name of GLOBALS) swap(globalThis, name, made[name]);
    swap(performance, "now", () => this.now);
    swap(Date, "now", () => Math.floor(this.now));
    swap(process.hrtime, "bigint", () => BigInt(Math.round(this.now * 1e6)));
    swap(Math, "random", () => random());
  }

  uninstall(): void {
    for (const undo of this.#undo.splice(0).toReversed()) undo();
    this.#timers.clear();
  }

  /** For the world itself: it rings whatever is frozen. */
  later(ms: number, ring: () => void, of?: Simulated): void {
    const id = (this.#ids += 1);
    this.#timers.set(id, { id, at: this.now + ms, order: id, every: undefined, ring, of });
  }

  /** When the next timer rings that can. */
  next(): number | undefined {
    return this.#first()?.at;
  }

  /** Moves to that moment, if it is not past, and rings it. */
  ring(): void {
    const found = this.#first();
    if (!found) return;
    const { timer, at } = found;
    this.now = Math.max(this.now, at);
    if (timer.every === undefined) this.#timers.delete(timer.id);
    else timer.at = this.now + timer.every;
    if (timer.of) this.context.run(timer.of, timer.ring);
    else this.context.exit(timer.ring);
  }

  #first(): { timer: Timer; at: number } | undefined {
    let first: Timer | undefined;
    let firstAt = Infinity;
    for (const timer of this.#timers.values()) {
      if (timer.of && !timer.of.isAlive) {
        this.#timers.delete(timer.id);
        continue;
      }
      const at = Math.max(timer.at, timer.of?.frozenUntil ?? 0);
      if (at < firstAt || (at === firstAt && timer.order < first!.order)) {
        first = timer;
        firstAt = at;
      }
    }
    return first && { timer: first, at: firstAt };
  }
}
