// A world in one thread: several processes with the product's own worker, lease keeper, settler, enqueuer and janitor, on
// one database and one clock. Every statement that one of them sends waits until the scheduler picks it; the scheduler
// also decides which of them are lost on the way, whose answers are, who freezes, who dies, who is cut off and for how long.
import { DatabaseUnavailable } from "#src/errors.js";
import { type Db, type Listener, type ListenHandlers, type QueryResult, type Queryable } from "#src/db/db.js";
import type { Random } from "../../support/random.ts";
import { asDb, type SimDatabase } from "./database.ts";
import { breathe, type Simulated, VirtualTime } from "./virtual-time.ts";

export interface SimProcess extends Simulated {
  /** What it sends waits until then, and so do the answers. */
  cutOffUntil: number;
  readonly db: Db;
}

interface Call {
  of: SimProcess;
  label: string;
  run(): Promise<unknown>;
  answer(value: unknown): void;
  fail(error: unknown): void;
  isOver: boolean;
  /** Its sender has given up, and it arrives all the same. */
  isLate: boolean;
}

/** How likely each is, for one statement. */
export interface Chances {
  lostBefore: number;
  lostAfter: number;
  slow: number;
  late: number;
}

export const CALM: Chances = { lostBefore: 0, lostAfter: 0, slow: 0, late: 0 };
const CALL_TIMEOUT_MS = 3_000;
/** The one thing that is not promised (docs/proof.md): an enqueue without a key that arrives after it was sent again. */
const NEVER_LATE = /insert_(alike|jobs|taken)_/;

export class World {
  readonly time: VirtualTime;
  readonly #random: Random;
  readonly #database: SimDatabase;
  readonly #listeners = new Map<SimProcess, ListenHandlers>();
  readonly #calls: Call[] = [];
  readonly #clockAt: { ms: number } = { ms: 0 };
  chances: Chances = CALM;
  /** How far the database's clock is from everybody else's. */
  clockSkewMs = 0;
  statements = 0;
  readonly faults: Record<string, number> = {};
  /** What happened, as a number: the same seed gives the same. */
  hash = 0;

  constructor(database: SimDatabase, random: Random, startMs: number) {
    this.#database = database;
    this.#random = random;
    this.time = new VirtualTime(startMs);
  }

  fault(name: string): void {
    this.faults[name] = (this.faults[name] ?? 0) + 1;
  }

  makeProcess(name: string): SimProcess {
    const made: SimProcess = {
      name,
      isAlive: true,
      frozenUntil: 0,
      cutOffUntil: 0,
      db: asDb(
        {
          query: <Row>(text: string, values?: readonly unknown[], options?: { timeoutMs?: number }) =>
            this.#send(made, text, options?.timeoutMs, () => this.#database.query<Row>(text, values)),
          transaction: <T>(work: (tx: Queryable) => Promise<T>) =>
            this.#send(made, "transaction", undefined, () => this.#database.transaction(work)),
        },
        {
          listen: (_, handlers) => this.#listen(made, handlers),
          notify: (_, payload) => this.#notify(payload),
        },
      ),
    };
    return made;
  }

  /** Runs something as that process. */
  as<T>(of: SimProcess, work: () => T): T {
    return this.time.context.run(of, work);
  }

  kill(of: SimProcess): void {
    of.isAlive = false;
    this.#listeners.delete(of);
    // What it had sent may still arrive.
    for (const call of this.#calls) if (call.of === of && this.#random.chance(0.5)) this.#drop(call);
  }

  /** One thing happens: a statement runs, or a timer rings. False: nothing ever will. */
  async step(): Promise<boolean> {
    const ready = this.#calls.filter((call) => call.of.cutOffUntil <= this.time.now);
    const next = this.time.next();
    const isDue = next !== undefined && next <= this.time.now;
    if (ready.length > 0 && (!isDue || this.#random.chance(0.6))) {
      await this.#carryOut(this.#random.pick(ready));
      if (this.#random.chance(0.4)) this.time.now += this.#random.whole(1, 4);
    } else if (next !== undefined) {
      this.time.ring();
    } else if (this.#calls.length > 0) {
      this.time.now += 50;
    } else {
      return false;
    }
    await breathe();
    return true;
  }

  #send<T>(of: SimProcess, label: string, timeoutMs = CALL_TIMEOUT_MS, run: () => Promise<T>): Promise<T> {
    return new Promise<T>((answer, fail) => {
      const call: Call = {
        of,
        label,
        // In the sender's context: a transaction's callback is its code.
        run: () => this.time.context.run(of, run),
        answer: (value) => answer(value as T),
        fail,
        isOver: false,
        isLate: false,
      };
      this.#calls.push(call);
      this.time.later(
        timeoutMs,
        () => {
          if (call.isOver) return;
          call.isOver = true;
          // A connection that is given up takes with it what was not read from it, or does not.
          if (this.#random.chance(this.chances.late) && !NEVER_LATE.test(label)) {
            call.isLate = true;
            this.fault("arrived late");
          } else this.#drop(call);
          fail(unavailable("did not answer in time"));
        },
        of,
      );
    });
  }

  async #carryOut(call: Call): Promise<void> {
    const { chances } = this;
    this.#drop(call);
    if (!call.isLate && call.isOver) return;
    if (call.of.isAlive && this.#random.chance(chances.lostBefore)) {
      this.fault("lost on the way there");
      return this.#reply(call, () => call.fail(unavailable("broke the connection")));
    }
    this.statements += 1;
    this.#note(call);
    await this.#syncClock();
    let reply: () => void;
    try {
      const value = await call.run();
      reply = () => call.answer(value);
    } catch (error) {
      reply = () => call.fail(error);
    }
    if (this.#random.chance(chances.lostAfter)) {
      this.fault("executed, and told it was not");
      reply = () => call.fail(unavailable("broke the connection"));
    }
    this.#reply(call, reply);
  }

  #reply(call: Call, reply: () => void): void {
    if (call.isOver) return;
    const isSlow = this.#random.chance(this.chances.slow);
    if (isSlow) this.fault("answered late");
    const waitMs = isSlow ? this.#random.whole(100, 2_500) : this.#random.whole(0, 2);
    const deliver = (): void => {
      if (call.isOver) return;
      if (call.of.cutOffUntil > this.time.now) {
        return this.time.later(call.of.cutOffUntil - this.time.now, deliver, call.of);
      }
      call.isOver = true;
      reply();
    };
    this.time.later(waitMs, deliver, call.of);
  }

  #drop(call: Call): void {
    const at = this.#calls.indexOf(call);
    if (at >= 0) this.#calls.splice(at, 1);
  }

  #note({ of, label }: Call): void {
    const text = `${of.name} ${label.slice(0, 80)}`;
    for (let at = 0; at < text.length; at += 1) this.hash = (Math.imul(this.hash, 31) + text.charCodeAt(at)) | 0;
  }

  async #syncClock(): Promise<void> {
    const ms = Math.floor(this.time.now + this.clockSkewMs);
    if (ms === this.#clockAt.ms) return;
    this.#clockAt.ms = ms;
    await this.#database.setClock(ms);
  }

  async #listen(of: SimProcess, handlers: ListenHandlers): Promise<Listener> {
    this.#listeners.set(of, handlers);
    this.time.later(1, () => handlers.onReady?.(), of);
    return { close: async () => void this.#listeners.delete(of) };
  }

  async #notify(payload: string): Promise<void> {
    for (const [of, { onMessage }] of this.#listeners) {
      // A hint may be lost, or late.
      if (this.#random.chance(0.3)) continue;
      this.time.later(this.#random.whole(0, 40), () => onMessage(payload), of);
    }
  }

  /** Direct, past the scheduler: for whoever judges. */
  async ask<Row>(text: string, values?: readonly unknown[]): Promise<QueryResult<Row>> {
    await this.#syncClock();
    return await this.#database.query<Row>(text, values);
  }
}

const unavailable = (what: string): DatabaseUnavailable =>
  new DatabaseUnavailable(`The simulated database ${what}.`, "Nobody knows whether it was heard.");
