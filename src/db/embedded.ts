// The embedded tier: PGlite in a folder (or in memory), in a thread of its own, for one process.
//
// Promises, beside those of db.ts:
// - it survives the death of the process at any moment (what was acknowledged is there again), not that of the machine:
//   PGlite never syncs to the disk;
// - there is one session. Calls take turns; a transaction has it alone, and who waits for longer than its time gets
//   DatabaseUnavailable. A call made inside a transaction but not through its `tx` would wait for itself: it is refused
//   at once (TransactionNested);
// - nothing interrupts a statement (PGlite ignores statement_timeout). When its time is over the call fails; if it goes
//   on, the engine is ended and the folder opened again, as after a crash. In memory it goes on, and later calls wait;
// - when the engine dies, calls under way fail with DatabaseUnavailable and the next one opens the folder again, under
//   the lock that is still held. A database in memory is gone then;
// - an open Db keeps the process alive only while calls are pending.
import { AsyncLocalStorage } from "node:async_hooks";
import { escapeIdentifier } from "pg";
import { Closed, OptionInvalid, TransactionNested } from "../errors.ts";
import type { Db, DbLoad, Listener, ListenHandlers, QueryOptions, QueryResult, Queryable } from "./db.ts";
import { Deadline } from "./embedded-deadline.ts";
import { makeFolder } from "./embedded-folder.ts";
import { Host } from "./embedded-host.ts";
import { checkChannel, Listeners } from "./embedded-listeners.ts";
import type { Session } from "./embedded-session.ts";
import { Transaction } from "./embedded-transaction.ts";
import { Turns } from "./embedded-turns.ts";
import { type FolderLock, lockFolder } from "./folder-lock.ts";

export type EmbeddedHome = { folder: string } | { memory: true };

export interface EmbeddedOptions {
  /** How long a statement may take, the wait for its turn included, when the call does not say. Default 10 s. */
  statementTimeoutMs?: number;
  /** After this long without a statement in an open transaction it is rolled back. Default 60 s. */
  idleInTransactionTimeoutMs?: number;
  /** How long close() waits for calls that are under way. Default 5 s. */
  closeTimeoutMs?: number;
  /** How long a start may take, also the first. Default 60 s. */
  openTimeoutMs?: number;
  /** What this process is, for the message that a second one gets: "holdfast dev". */
  command?: string;
  /** Told of trouble that no call can report. For logs. */
  onTrouble?: (error: Error) => void;
  /** Where the thread's file is. null: run in this thread, and block it during every statement. For tests. */
  thread?: URL | null;
  /** A file of embedded-seed.ts to make new databases from. Default: the one beside this module, if it is there. */
  seed?: string;
}

type Optional = "command" | "thread" | "seed";
type Settings = Required<Omit<EmbeddedOptions, Optional>> & Pick<EmbeddedOptions, Optional>;

/** setTimeout turns anything longer into 1 ms. */
const LONGEST_TIMEOUT_MS = 2_147_483_647;

export async function openEmbedded(home: EmbeddedHome, options: EmbeddedOptions = {}): Promise<Db> {
  const settings = readOptions(options);
  if ("memory" in home) return EmbeddedDb.open(null, null, settings);
  const folder = await makeFolder(home.folder);
  return EmbeddedDb.open(folder, await lockFolder(folder, settings), settings);
}

class EmbeddedDb implements Db {
  readonly tier = "embedded";
  readonly copyIn = undefined;
  readonly #settings: Settings;
  readonly #lock: FolderLock | null;
  readonly #host: Host;
  readonly #listeners: Listeners;
  readonly #turns = new Turns();
  readonly #inside = new AsyncLocalStorage<Transaction>();
  #calls = 0;
  #onQuiet: (() => void) | undefined;
  #closing: Promise<void> | undefined;

  private constructor(folder: string | null, lock: FolderLock | null, settings: Settings) {
    this.#settings = settings;
    this.#lock = lock;
    this.#listeners = new Listeners(settings.onTrouble);
    this.#host = new Host({ ...settings, folder }, this.#listeners);
  }

  static async open(folder: string | null, lock: FolderLock | null, settings: Settings): Promise<EmbeddedDb> {
    const db = new EmbeddedDb(folder, lock, settings);
    try {
      await db.#host.session();
      return db;
    } catch (error) {
      await db.#unlock();
      throw error;
    }
  }

  async query<Row>(text: string, values?: readonly unknown[], options?: QueryOptions): Promise<QueryResult<Row>> {
    return this.#call(options, false, async (session, deadline) => {
      const { rows, rowCount, status } = await session.run<Row>(deadline, text, values);
      if (status === "I") return { rows, rowCount };
      await session.run(deadline, "rollback");
      throw new OptionInvalid("The statement left a transaction open; it is rolled back.", "Use db.transaction().");
    });
  }

  async script(text: string, options?: QueryOptions): Promise<void> {
    await this.#call(options, true, async (session, deadline) => {
      let leftOpen = true;
      try {
        const { status } = await session.runScript(deadline, text);
        leftOpen = status !== "I";
      } finally {
        // It may have failed inside a transaction of its own.
        if (leftOpen) await session.run(deadline, "rollback");
      }
      if (leftOpen) {
        throw new OptionInvalid("The script left a transaction open; it is rolled back.", "End it with COMMIT.");
      }
    });
  }

  async transaction<T>(work: (tx: Queryable) => Promise<T>, options?: QueryOptions): Promise<T> {
    return this.#counted(options, async (timeoutMs) => {
      const deadline = new Deadline(timeoutMs, "waiting");
      try {
        const turn = await this.#turns.take(true, deadline.expired);
        let session: Session;
        try {
          session = await Promise.race([this.#host.session(), deadline.expired]);
        } catch (error) {
          turn.end();
          throw error;
        }
        const limits = { timeoutMs, idleMs: this.#settings.idleInTransactionTimeoutMs };
        const transaction = new Transaction(session, limits, () => turn.end());
        return await transaction.run(() => this.#inside.run(transaction, async () => work(transaction)));
      } finally {
        deadline.clear();
      }
    });
  }

  async listen(channel: string, handlers: ListenHandlers): Promise<Listener> {
    this.#refuse();
    checkChannel(channel);
    const remove = this.#listeners.add(channel, handlers);
    try {
      await this.#call(undefined, false, (session, deadline) =>
        session.run(deadline, `listen ${escapeIdentifier(channel)}`),
      );
    } catch (error) {
      remove();
      throw error;
    }
    this.#listeners.guard(() => handlers.onReady?.());
    return {
      close: async () => {
        if (!remove() || this.#closing) return;
        await this.#call(undefined, false, (session, deadline) =>
          session.run(deadline, `unlisten ${escapeIdentifier(channel)}`),
        );
      },
    };
  }

  assertOutside(): void {
    this.#refuseNested();
  }

  /** One session, which calls share. */
  load(): DbLoad {
    const busy = this.#turns.running > 0 ? 1 : 0;
    return { most: 1, busy, idle: 1 - busy, waiting: this.#turns.waiting };
  }

  async notify(channel: string, payload: string): Promise<void> {
    await this.query("select pg_notify($1, $2)", [channel, payload]);
  }

  async close(): Promise<void> {
    this.#refuseNested();
    this.#closing ??= this.#close();
    await this.#closing;
  }

  /** One turn on the session for `use`, which ends with it: later than the call itself if that ran out of time. */
  async #call<T>(
    options: QueryOptions | undefined,
    alone: boolean,
    use: (session: Session, deadline: Deadline) => Promise<T>,
  ): Promise<T> {
    return this.#counted(options, async (timeoutMs) => {
      const deadline = new Deadline(timeoutMs, "waiting");
      try {
        const turn = await this.#turns.take(alone, deadline.expired);
        deadline.phase = "running";
        deadline.expired.catch(() => turn.shun());
        const using = this.#use(deadline, use);
        using.then(
          () => turn.end(),
          () => turn.end(),
        );
        return await Promise.race([using, deadline.expired]);
      } finally {
        deadline.clear();
      }
    });
  }

  async #use<T>(deadline: Deadline, use: (session: Session, deadline: Deadline) => Promise<T>): Promise<T> {
    return use(await this.#host.session(), deadline);
  }

  async #counted<T>(options: QueryOptions | undefined, call: (timeoutMs: number) => Promise<T>): Promise<T> {
    this.#refuse();
    const timeoutMs = milliseconds("timeoutMs", options?.timeoutMs, this.#settings.statementTimeoutMs);
    this.#calls += 1;
    if (this.#calls === 1) this.#host.hold(true);
    try {
      return await call(timeoutMs);
    } finally {
      this.#calls -= 1;
      if (this.#calls === 0) {
        this.#host.hold(false);
        this.#onQuiet?.();
      }
    }
  }

  #refuse(): void {
    this.#refuseNested();
    if (this.#closing) throw new Closed("The embedded database is closed.", "Open it again.");
  }

  #refuseNested(): void {
    if (!this.#inside.getStore()?.open) return;
    const message = "This call is made inside a transaction on the embedded database, and would wait for it to end.";
    throw new TransactionNested(message, "Use the `tx` that the transaction's callback is given.");
  }

  async #close(): Promise<void> {
    const { closeTimeoutMs } = this.#settings;
    await new Promise<void>((resolve) => {
      if (this.#calls === 0) return resolve();
      const timer = setTimeout(resolve, closeTimeoutMs);
      this.#onQuiet = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    this.#turns.refuseAll(new Closed("The embedded database is closed.", "Wait for your calls before closing it."));
    await this.#host.close(closeTimeoutMs);
    await this.#unlock();
  }

  /** An engine that may still write keeps its folder locked until the process ends. */
  async #unlock(): Promise<void> {
    if (this.#host.ended) await this.#lock?.release();
    else this.#settings.onTrouble(new Error("The embedded database could not be ended; its folder stays locked."));
  }
}

function readOptions(options: EmbeddedOptions): Settings {
  const { statementTimeoutMs, idleInTransactionTimeoutMs, closeTimeoutMs, openTimeoutMs } = options;
  return {
    ...options,
    statementTimeoutMs: milliseconds("statementTimeoutMs", statementTimeoutMs, 10_000),
    idleInTransactionTimeoutMs: milliseconds("idleInTransactionTimeoutMs", idleInTransactionTimeoutMs, 60_000),
    closeTimeoutMs: milliseconds("closeTimeoutMs", closeTimeoutMs, 5_000),
    openTimeoutMs: milliseconds("openTimeoutMs", openTimeoutMs, 60_000),
    onTrouble: (error) => {
      try {
        options.onTrouble?.(error);
      } catch {
        // There is nowhere left to say it.
      }
    },
  };
}

function milliseconds(name: string, value: number | undefined, fallback: number): number {
  const ms = value ?? fallback;
  if (ms > 0 && ms <= LONGEST_TIMEOUT_MS) return ms;
  throw new OptionInvalid(`${name} is ${String(ms)}.`, `Write milliseconds, from 1 to ${LONGEST_TIMEOUT_MS}.`);
}
