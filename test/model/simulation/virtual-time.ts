// Time that only passes when it is told to. While it is installed, timers, clocks and chance of everything that is called from
// `inside` are its own: a simulated hour takes no time, and the same seed takes the same course. Whatever else this process
// still does has the real ones, and does not change that course.
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

const MADE_BY = ["setTimeout", "setInterval", "setImmediate"] as const;
const realImmediate = setImmediate;

/** Lets every promise that can go on do so. */
export const breathe = (): Promise<void> => new Promise((resolve) => void realImmediate(resolve));

/** One for all: each that is ever used costs every promise of the process a little, for ever. */
const context = new AsyncLocalStorage<Simulated>();
/** Whoever looks on from outside the simulated processes. */
const ONLOOKER: Simulated = { name: "onlooker", isAlive: true, frozenUntil: 0 };

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
    const handles = new WeakSet<object>();
    const add = (ring: () => void, ms: unknown, every?: number): unknown => {
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
      handles.add(handle);
      return handle;
    };
    type Call = (...args: unknown[]) => void;
    const made: Record<(typeof MADE_BY)[number], Call> = {
      setTimeout: (call, ms, ...args) => add(() => (call as Call)(...args), ms),
      setInterval: (call, ms, ...args) => add(() => (call as Call)(...args), ms, Math.max(1, Number(ms) || 1)),
      setImmediate: (call, ...args) => add(() => (call as Call)(...args), 0),
    };
    const own = (target: object, name: string, replacement: Call): void => {
      const real = (Reflect.get(target, name) as Call).bind(target);
      swap(target, name, (...args: unknown[]) => (this.context.getStore() ? replacement : real)(...args));
    };
    for (const name of MADE_BY) own(globalThis, name, made[name]);
    // Whoever clears it: an answer that arrives from a socket is outside.
    for (const name of ["clearTimeout", "clearInterval"] as const) {
      const real = globalThis[name];
      swap(globalThis, name, (handle: object | undefined) => {
        if (!handles.has(handle!)) return real(handle as never);
        this.#timers.delete((handle as { id: number }).id);
      });
    }
    own(performance, "now", () => this.now);
    own(Date, "now", () => Math.floor(this.now));
    own(process.hrtime, "bigint", () => BigInt(Math.round(this.now * 1e6)));
    own(Math, "random", () => random());
  }

  /** Runs something on this time. */
  inside<T>(work: () => T): T {
    return this.context.run(ONLOOKER, work);
  }

  uninstall(): void {
    for (const undo of this.#undo.splice(0).toReversed()) undo();
    this.#timers.clear();
  }

  /** For the world itself: it rings whatever is frozen. */
  later(ms: number, ring: () => void, of: Simulated = ONLOOKER): void {
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
    this.context.run(timer.of ?? ONLOOKER, timer.ring);
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
