// The embedded tier: PGlite in a folder (or in memory), in a thread of its own, for one process.
//
// Promises, beside those of db.ts:
// - it survives the death of the process at any moment (what was acknowledged is there again), not that of the machine:
//   PGlite never syncs to the disk;
// - there is one session. Calls take turns; a transaction has it alone, and whoever waits longer than its time gets
//   DatabaseUnavailable. A call made from inside a transaction, not through its `tx`, would wait for itself: it is
//   refused at once (TransactionNested);
// - nothing can interrupt a statement: when its time is over the call fails, the thread goes on, later calls wait;
// - when the engine dies, calls under way fail with DatabaseUnavailable and the next one opens the folder again, under
//   the lock that is still held. A database in memory is gone then;
// - an open Db keeps the process alive only while calls are pending.
import { AsyncLocalStorage } from "node:async_hooks";
import pg from "pg";
import { Closed, DatabaseUnavailable, HoldfastError, OptionInvalid, TransactionNested } from "../errors.ts";
import { formatDuration } from "../shared/duration.ts";
import type { Db, ListenHandlers, Listener, QueryOptions, QueryResult, Queryable } from "./db.ts";
import { Deadline } from "./embedded-deadline.ts";
import { cannotOpen, makeFolder, readyPgdata, writeNote } from "./embedded-folder.ts";
import { type Link, startLink } from "./embedded-link.ts";
import { Session } from "./embedded-session.ts";
import { Turns } from "./embedded-turns.ts";
import { type FolderLock, lockFolder } from "./folder-lock.ts";

export type EmbeddedHome = { folder: string } | { memory: true };

export interface EmbeddedOptions {
  /** How long a call may take, its wait for a turn included, when it does not say. Default 10 s. */
  statementTimeoutMs?: number;
  /** How long close() waits for calls that are under way. Default 5 s. */
  closeTimeoutMs?: number;
  /** How long a start may take, a first one included. Default 60 s. */
  openTimeoutMs?: number;
  /** What this process is, for the message that a second one gets: "holdfast dev". */
  command?: string;
  /** Told of trouble that no call can report. For logs. */
  onTrouble?: (error: Error) => void;
  /** Where the engine's thread is. null: run in this thread, and block it. For tests. */
  thread?: URL | null;
}

export async function openEmbedded(home: EmbeddedHome, options: EmbeddedOptions = {}): Promise<Db> {
  const settings = readOptions(options);
  if ("memory" in home) return EmbeddedDb.open(null, null, settings);
  const folder = await makeFolder(home.folder);
  const lock = await lockFolder(folder, settings);
  try {
    return await EmbeddedDb.open(folder, lock, settings);
  } catch (error) {
    await lock.release();
    throw error;
  }
}

/** After a start that failed, the next is not tried before this. */
const REOPEN_PAUSE_MS = 1_000;
/** An engine that did not open has nothing to close. */
const CLOSE_FAILED_MS = 1_000;

/** A transaction that is open, as its own code sees it. */
interface Scope {
  open: boolean;
  /** Its own code sent a COMMIT or a ROLLBACK. */
  broken: boolean;
  firstError: unknown;
}

interface Settings extends EmbeddedOptions {
  statementTimeoutMs: number;
  closeTimeoutMs: number;
  openTimeoutMs: number;
  onTrouble: (error: Error) => void;
}

class EmbeddedDb implements Db {
  readonly tier = "embedded";
  readonly #folder: string | null;
  readonly #lock: FolderLock | null;
  readonly #settings: Settings;
  readonly #turns = new Turns();
  readonly #scopes = new AsyncLocalStorage<Scope>();
  readonly #listeners = new Map<string, Set<{ handlers: ListenHandlers }>>();
  #link: Link | null = null;
  #session: Session | null = null;
  #opening: Promise<Session> | null = null;
  #openFailed: { at: number; error: unknown } | null = null;
  #pending = 0;
  #onIdle: (() => void) | null = null;
  #closing: Promise<void> | null = null;

  private constructor(folder: string | null, lock: FolderLock | null, settings: Settings) {
    this.#folder = folder;
    this.#lock = lock;
    this.#settings = settings;
  }

  static async open(folder: string | null, lock: FolderLock | null, settings: Settings): Promise<EmbeddedDb> {
    const db = new EmbeddedDb(folder, lock, settings);
    await db.#open();
    return db;
  }

  async query<Row>(text: string, values?: readonly unknown[], options?: QueryOptions): Promise<QueryResult<Row>> {
    return this.#call(options, false, async (session) => {
      const { rows, rowCount, status } = await session.run(text, values);
      if (status !== "I") {
        await session.run("rollback");
        throw new OptionInvalid("The statement left a transaction open; it was rolled back.", "Use db.transaction().");
      }
      return { rows: rows as Row[], rowCount };
    });
  }

  async script(text: string, options?: QueryOptions): Promise<void> {
    await this.#call(options, true, async (session) => {
      try {
        const { status } = await session.runScript(text);
        if (status === "I") return;
      } catch (error) {
        await session.run("rollback");
        throw error;
      }
      await session.run("rollback");
      throw new OptionInvalid("The script left a transaction open; it was rolled back.", "End it with COMMIT.");
    });
  }

  async transaction<T>(work: (tx: Queryable) => Promise<T>, options?: QueryOptions): Promise<T> {
    return this.#call(options, true, (session, deadline) => this.#transact(session, deadline, work));
  }

  async listen(channel: string, handlers: ListenHandlers): Promise<Listener> {
    const name = pg.escapeIdentifier(channel);
    const forChannel = this.#listeners.get(channel) ?? new Set();
    this.#listeners.set(channel, forChannel);
    const mine = { handlers };
    forChannel.add(mine);
    try {
      await this.#call(undefined, false, (session) => session.run(`listen ${name}`));
    } catch (error) {
      forChannel.delete(mine);
      throw error;
    }
    this.#tell(() => handlers.onReady?.());
    return {
      close: async () => {
        if (!forChannel.delete(mine) || forChannel.size > 0 || this.#closing) return;
        await this.#call(undefined, false, (session) => session.run(`unlisten ${name}`));
      },
    };
  }

  async notify(channel: string, payload: string): Promise<void> {
    await this.#call(undefined, false, (session) => session.run("select pg_notify($1, $2)", [channel, payload]));
  }

  async close(): Promise<void> {
    this.#refuseNested();
    this.#closing ??= this.#close();
    await this.#closing;
  }

  // A call ---------------------------------------------------------------------------------------------------------

  async #call<T>(
    options: QueryOptions | undefined,
    alone: boolean,
    work: (session: Session, deadline: Deadline) => Promise<T>,
  ): Promise<T> {
    this.#refuseNested();
    if (this.#closing) throw closed();
    const deadline = new Deadline(options?.timeoutMs ?? this.#settings.statementTimeoutMs);
    this.#began();
    try {
      const turn = await this.#turns.take(alone, deadline.expired);
      deadline.phase = "running";
      const running = this.#run(work, deadline);
      // The turn ends with the work, which may be later than the call's time.
      running.then(turn.release, turn.release);
      return await Promise.race([running, deadline.expired]);
    } finally {
      deadline.clear();
      this.#finished();
    }
  }

  async #run<T>(work: (session: Session, deadline: Deadline) => Promise<T>, deadline: Deadline): Promise<T> {
    const session = this.#session ?? (await this.#open());
    try {
      return await work(session, deadline);
    } catch (error) {
      throw this.#translate(error, session, deadline);
    }
  }

  async #transact<T>(session: Session, deadline: Deadline, work: (tx: Queryable) => Promise<T>): Promise<T> {
    const scope: Scope = { open: true, broken: false, firstError: null };
    // Sent without waiting: the first statement travels with it.
    const begun = session.run("begin");
    begun.catch(() => {});
    let value: T;
    try {
      const tx = this.#transactionOf(session, deadline, scope);
      value = await Promise.race([this.#scopes.run(scope, async () => work(tx)), deadline.expired]);
      await begun;
    } catch (error) {
      scope.open = false;
      await session.run("rollback").catch(() => {});
      throw error;
    }
    scope.open = false;
    deadline.phase = "committing";
    const { command } = await session.run("commit");
    if (command !== "COMMIT" || scope.broken) throw scope.firstError;
    return value;
  }

  #transactionOf(session: Session, deadline: Deadline, scope: Scope): Queryable {
    return {
      query: async <Row>(text: string, values?: readonly unknown[]): Promise<QueryResult<Row>> => {
        if (deadline.over) return deadline.expired;
        if (!scope.open) throw new Closed("The transaction has ended.", "Await every query inside its callback.");
        try {
          const { rows, rowCount, status } = await session.run(text, values);
          if (status !== "I") return { rows: rows as Row[], rowCount };
          scope.broken = true;
          scope.open = false;
          const hint = "Let the callback return to commit, or throw to roll back.";
          throw new OptionInvalid("The statement ended the transaction that it was part of.", hint);
        } catch (error) {
          scope.firstError ??= error;
          throw this.#translate(error, session, deadline);
        }
      },
    };
  }

  #refuseNested(): void {
    if (!this.#scopes.getStore()?.open) return;
    const message = "This call is made inside a transaction on the embedded database, and would wait for it to end.";
    throw new TransactionNested(message, "Use the `tx` that the transaction's callback was given.");
  }

  #translate(error: unknown, session: Session, deadline: Deadline): unknown {
    if (session.ended === null || error instanceof HoldfastError || error instanceof pg.DatabaseError) return error;
    if (this.#closing) return closed();
    return died(session.ended, deadline.phase === "committing");
  }

  #began(): void {
    this.#pending += 1;
    if (this.#pending === 1) this.#link?.hold(true);
  }

  #finished(): void {
    this.#pending -= 1;
    if (this.#pending > 0) return;
    this.#link?.hold(false);
    this.#onIdle?.();
  }

  // The engine -----------------------------------------------------------------------------------------------------

  /** The first time, and again after the engine died. */
  #open(): Promise<Session> {
    this.#opening ??= this.#start().finally(() => (this.#opening = null));
    return this.#opening;
  }

  async #start(): Promise<Session> {
    const again = this.#link !== null;
    if (again && this.#folder === null) {
      const message = "The embedded database in memory has stopped, and what it held is gone.";
      throw new DatabaseUnavailable(message, "Open a new one; use a folder for what must last.");
    }
    const failed = this.#openFailed;
    if (failed && performance.now() - failed.at < REOPEN_PAUSE_MS) throw failed.error;
    const link = await startLink(this.#settings);
    try {
      this.#session = await inTime(this.#settings.openTimeoutMs, this.#connect(link));
      this.#link = link;
      this.#openFailed = null;
      link.hold(this.#pending > 0);
      return this.#session;
    } catch (cause) {
      await link.close(CLOSE_FAILED_MS);
      const error = cause instanceof HoldfastError ? cause : cannotOpen(this.#folder ?? "memory", cause);
      this.#openFailed = { at: performance.now(), error };
      throw error;
    }
  }

  async #connect(link: Link): Promise<Session> {
    const session = new Session(link, ({ channel, payload }) => {
      for (const { handlers } of this.#listeners.get(channel) ?? []) this.#tell(() => handlers.onMessage(payload));
    });
    link.onDeath = (reason) => this.#died(session, reason);
    await link.open(this.#folder === null ? null : await readyPgdata(this.#folder, (path) => link.initialise(path)));
    await session.connect();
    if (this.#folder !== null) await this.#note(this.#folder, session);
    await this.#listenAgain(session);
    return session;
  }

  async #listenAgain(session: Session): Promise<void> {
    for (const [channel, forChannel] of this.#listeners) {
      if (forChannel.size === 0) continue;
      await session.run(`listen ${pg.escapeIdentifier(channel)}`);
      for (const { handlers } of forChannel) this.#tell(() => handlers.onReady?.());
    }
  }

  #died(session: Session, reason: Error): void {
    session.end(reason);
    if (this.#session !== session) return;
    this.#session = null;
    if (this.#closing) return;
    this.#settings.onTrouble(died(reason, false));
    const listening = [...this.#listeners.values()].flatMap((forChannel) => [...forChannel]);
    for (const { handlers } of listening) this.#tell(() => handlers.onDown?.(reason.message));
    // Nobody may call for a while, but notifications are waited for.
    if (listening.length > 0) this.#open().catch(() => {});
  }

  async #note(folder: string, session: Session): Promise<void> {
    const { rows } = await session.run("select version() as version");
    const { version } = rows[0] as { version: string };
    const [, pgVersion = "", pgliteVersion = ""] = /^PostgreSQL (\S+) \(PGlite (\S+)\)/.exec(version) ?? [];
    await writeNote(folder, { pgliteVersion, pgVersion });
  }

  async #close(): Promise<void> {
    const timeoutMs = this.#settings.closeTimeoutMs;
    if (this.#pending > 0) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, timeoutMs);
        this.#onIdle = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
    this.#turns.refuseAll(closed());
    await this.#opening?.catch(() => {});
    const ended = (await this.#link?.close(timeoutMs)) ?? true;
    this.#session?.end(closed());
    // An engine that may still write keeps its folder locked until the process ends.
    if (ended) await this.#lock?.release();
  }

  /** A handler that throws must not break the session it hangs on. */
  #tell(handler: () => void): void {
    try {
      handler();
    } catch (error) {
      this.#settings.onTrouble(error instanceof Error ? error : new Error(String(error)));
    }
  }
}

function readOptions(options: EmbeddedOptions): Settings {
  return {
    ...options,
    statementTimeoutMs: milliseconds("statementTimeoutMs", options.statementTimeoutMs, 10_000),
    closeTimeoutMs: milliseconds("closeTimeoutMs", options.closeTimeoutMs, 5_000),
    openTimeoutMs: milliseconds("openTimeoutMs", options.openTimeoutMs, 60_000),
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
  if (value === undefined) return fallback;
  if (Number.isInteger(value) && value > 0) return value;
  throw new OptionInvalid(`${name} is ${String(value)}.`, "Write a whole number of milliseconds, at least 1.");
}

async function inTime<T>(ms: number, opening: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    const message = `The embedded database did not start within ${formatDuration(ms)}.`;
    timer = setTimeout(() => reject(new DatabaseUnavailable(message, "Start again, with more time if need be.")), ms);
  });
  try {
    return await Promise.race([opening, late]);
  } finally {
    clearTimeout(timer);
  }
}

function closed(): Closed {
  return new Closed("The embedded database is closed.", "Open it again, or wait for your calls before closing it.");
}

function died(cause: Error, committing: boolean): DatabaseUnavailable {
  const message = `The embedded database stopped during this call (${cause.message}).`;
  const hint = committing
    ? "Whether the transaction took effect is unknown: look before doing it again."
    : "Make the call again: the database is opened anew.";
  return new DatabaseUnavailable(message, hint, { cause });
}
