// The server tier: a Db over a pool of `pg` connections. It keeps the promises of db.ts on a bad network too:
// - a call that gets no answer destroys its connection, and every idle one that was silent as long: none of them is
//   handed out again, and the pool fills up anew;
// - it works behind a pooler in transaction mode: no named statements, no session settings, no startup options;
// - opening makes no connection: a process may start while its database is away.
import { DatabaseError, Pool, type PoolClient } from "pg";
import { Closed, DatabaseUnavailable, OptionInvalid } from "../errors.ts";
import { formatDuration } from "../shared/duration.ts";
import { jitter, sleep } from "../shared/sleep.ts";
import type { Db, DbLoad, Listener, ListenHandlers, QueryOptions, QueryResult, Queryable } from "./db.ts";
import { PostgresConnection } from "./postgres-connection.ts";
import { NOTIFY, PostgresListener } from "./postgres-listener.ts";
import { LONGEST_TIMEOUT_MS, type PostgresOptions, type PostgresSettings, readOptions } from "./postgres-options.ts";
import { runTransaction } from "./postgres-transaction.ts";
import { asError, asPoolBusy, codeOf, isConnectionTrouble, reasonOf, SERIALIZATION_FAILURE } from "./retryable.ts";

export type { PostgresOptions } from "./postgres-options.ts";

/** Nobody waits for an answer any more when the pool says goodbye. */
const GOODBYE_MS = 500;
const IDLE_TIMEOUT_MS = 30_000;
const MOST_TRIES = 8;
const NO_VALUES: readonly unknown[] = [];

type Pooled = PostgresConnection & PoolClient;

export async function openPostgres(options: PostgresOptions): Promise<Db> {
  return new PostgresDb(readOptions(options));
}

class PostgresDb implements Db {
  readonly tier = "server";
  readonly #settings: PostgresSettings;
  readonly #pool: Pool;
  /** Every connection of the pool whose socket is not closed yet. */
  readonly #connections = new Set<PostgresConnection>();
  readonly #listeners = new Set<PostgresListener>();
  /** Calls that wait for a connection. */
  readonly #waiting = new Set<(error: Error) => void>();
  #busy = 0;
  #calls = 0;
  #onQuiet: (() => void) | undefined;
  #closing: Promise<void> | undefined;

  constructor(settings: PostgresSettings) {
    this.#settings = settings;
    const connections = this.#connections;
    const onSilence = (sentAt: number): void => this.#dropSilent(sentAt);
    class PoolConnection extends PostgresConnection {
      constructor() {
        super(settings, onSilence);
        connections.add(this);
        this.on("end", () => connections.delete(this));
      }
    }
    this.#pool = new Pool({
      Client: PoolConnection,
      max: settings.poolSize,
      connectionTimeoutMillis: settings.connectTimeoutMs,
      idleTimeoutMillis: IDLE_TIMEOUT_MS,
    });
    this.#pool.on("error", (error, client) => {
      settings.onTrouble((client instanceof PostgresConnection ? client.lost : undefined) ?? error);
    });
  }

  async query<Row>(
    text: string,
    values: readonly unknown[] = NO_VALUES,
    options?: QueryOptions,
  ): Promise<QueryResult<Row>> {
    for (let tries = 0; ; tries += 1) {
      try {
        return await this.#call(options, async (connection, timeoutMs) => {
          const { rows, rowCount } = await connection.run(text, values, timeoutMs);
          return { rows, rowCount: rowCount ?? 0 };
        });
      } catch (error) {
        // Only where `serializable` is the default of the database or the role. Nothing of the statement is left.
        if (codeOf(error) !== SERIALIZATION_FAILURE || tries === MOST_TRIES) throw error;
        await sleep(jitter(2 ** tries));
      }
    }
  }

  async copyIn(text: string, parts: Iterable<string>, options?: QueryOptions): Promise<void> {
    await this.#call(options, (connection, timeoutMs) => connection.copyIn(text, parts, timeoutMs));
  }

  async transaction<T>(work: (tx: Queryable) => Promise<T>, options?: QueryOptions): Promise<T> {
    const timeoutMs = this.#timeoutOf(options);
    return this.#call(options, (connection) =>
      runTransaction(connection, work, timeoutMs, this.#settings.idleInTransactionTimeoutMs),
    );
  }

  async script(text: string, options?: QueryOptions): Promise<void> {
    return this.#call(options, async (connection, timeoutMs) => {
      try {
        await connection.run(text, undefined, timeoutMs);
      } catch (error) {
        // It may have failed inside a transaction of its own; the server has not said yet whether that is open.
        connection.destroy(asError(error));
        throw error;
      }
      if (connection.getTransactionStatus() !== "I") {
        throw new OptionInvalid("The script left a transaction open; it is rolled back.", "End it with COMMIT.");
      }
    });
  }

  async listen(channel: string, handlers: ListenHandlers): Promise<Listener> {
    if (this.#closing) throw closed();
    const listener = new PostgresListener(this.#settings, channel, handlers, (to, payload, timeoutMs) =>
      this.#notify(to, payload, { timeoutMs }),
    );
    this.#listeners.add(listener);
    await listener.start();
    if (this.#closing) throw closed();
    return {
      close: () => {
        this.#listeners.delete(listener);
        return listener.close();
      },
    };
  }

  /** Every call has a connection of its own here. */
  assertOutside(): void {}

  load(): DbLoad {
    const { idleCount: idle, waitingCount: waiting } = this.#pool;
    return { most: this.#settings.poolSize, busy: this.#busy, idle, waiting };
  }

  notify(channel: string, payload: string): Promise<void> {
    return this.#notify(channel, payload);
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #notify(channel: string, payload: string, options?: QueryOptions): Promise<void> {
    await this.query(NOTIFY, [channel, payload], options);
  }

  /** Borrows a connection for `use`, which gets what is left of the timeout. */
  async #call<T>(
    options: QueryOptions | undefined,
    use: (connection: PostgresConnection, timeoutMs: number) => Promise<T>,
  ): Promise<T> {
    if (this.#closing) throw closed();
    const timeoutMs = this.#timeoutOf(options);
    const startedAt = performance.now();
    this.#calls += 1;
    try {
      const connection = await this.#borrow(timeoutMs);
      try {
        return await use(connection, Math.max(1, timeoutMs - (performance.now() - startedAt)));
      } finally {
        this.#giveBack(connection);
      }
    } catch (error) {
      // The stack of what pg throws ends at a socket; this one leads to the caller.
      if (error instanceof DatabaseError || error instanceof DatabaseUnavailable) Error.captureStackTrace(error);
      throw error;
    } finally {
      this.#calls -= 1;
      if (this.#calls === 0) this.#onQuiet?.();
    }
  }

  #borrow(timeoutMs: number): Promise<Pooled> {
    return new Promise((resolve, reject) => {
      let timer: NodeJS.Timeout | undefined;
      let tried = 1;
      const fail = (error: Error): void => {
        if (!this.#waiting.delete(fail)) return;
        clearTimeout(timer);
        reject(error);
      };
      const take = (error: Error | undefined, connection: PoolClient | undefined): void => {
        if (!this.#waiting.has(fail)) {
          connection?.release();
          return;
        }
        if (!(connection instanceof PostgresConnection)) {
          if (tried < this.#settings.hosts.count && this.#closing === undefined && isConnectionTrouble(error)) {
            tried += 1;
            return this.#pool.connect(take);
          }
          return fail(this.#noConnection(error, this.#settings.connectTimeoutMs));
        }
        if (connection.lost) {
          // It broke while it lay idle, and the pool has not noticed yet.
          connection.release(true);
          this.#pool.connect(take);
          return;
        }
        this.#waiting.delete(fail);
        clearTimeout(timer);
        connection.busy = true;
        this.#busy += 1;
        resolve(connection);
      };
      this.#waiting.add(fail);
      // The pool itself gives up after connectTimeoutMs.
      if (timeoutMs < this.#settings.connectTimeoutMs) {
        timer = setTimeout(() => fail(this.#noConnection(undefined, timeoutMs)), timeoutMs);
      }
      this.#pool.connect(take);
    });
  }

  #giveBack(connection: Pooled): void {
    this.#busy -= 1;
    connection.busy = false;
    if (!connection.lost && connection.getTransactionStatus() !== "I") {
      connection.destroy(new Error("It was given back with a transaction open."));
    }
    connection.release(connection.lost !== undefined);
  }

  /** Connections that share a fate with one that fell silent: idle, and not heard of since. */
  #dropSilent(sentAt: number): void {
    for (const connection of this.#connections) {
      if (connection.busy || connection.answeredAt === 0 || connection.answeredAt > sentAt) continue;
      connection.destroy(new Error("Given up: another connection got no answer, and this one was idle as long."));
    }
  }

  #noConnection(cause: Error | undefined, waitedMs: number): Error {
    if (this.#closing) return closed();
    if (cause && !isConnectionTrouble(cause)) return passwordMissing(cause) ?? cause;
    const { addresses, poolSize } = this.#settings;
    const address = addresses.join(", ");
    const waited = formatDuration(waitedMs);
    if (this.#busy >= poolSize) {
      const message = `No connection to PostgreSQL at ${address} became free within ${waited}: all ${poolSize} are busy.`;
      const hint = "Raise poolSize, or look for transactions that are held open too long.";
      return asPoolBusy(new DatabaseUnavailable(message, hint, { cause }));
    }
    const why = cause ? reasonOf(cause) : `no connection within ${waited}`;
    const message = `PostgreSQL at ${address} cannot be reached: ${why}.`;
    const hint = "Check the address, and that the server runs and takes connections. The call may be made again.";
    return new DatabaseUnavailable(message, hint, { cause });
  }

  #timeoutOf(options: QueryOptions | undefined): number {
    const timeoutMs = options?.timeoutMs ?? this.#settings.statementTimeoutMs;
    if (timeoutMs > 0 && timeoutMs <= LONGEST_TIMEOUT_MS) return timeoutMs;
    throw new OptionInvalid(`timeoutMs is ${timeoutMs}.`, `Write milliseconds, from 1 to ${LONGEST_TIMEOUT_MS}.`);
  }

  async #close(): Promise<void> {
    await Promise.all(Array.from(this.#listeners, (listener) => listener.close()));
    await within(this.#settings.closeTimeoutMs, (done) => {
      this.#onQuiet = done;
      if (this.#calls === 0) done();
    });
    const why = closed();
    for (const fail of this.#waiting) fail(why);
    for (const connection of this.#connections) if (connection.busy) connection.destroy(why);
    this.#pool.end(() => {});
    await within(GOODBYE_MS, (done) => {
      const gone = (): void => {
        if (this.#connections.size === 0) done();
      };
      for (const connection of this.#connections) connection.on("end", gone);
      gone();
    });
    for (const connection of this.#connections) connection.destroy(why);
  }
}

/** pg has no code for it, and speaks of SASL. */
function passwordMissing(cause: Error): OptionInvalid | undefined {
  if (codeOf(cause) !== undefined || !/client password must be/.test(cause.message)) return undefined;
  const hint = "Put it into the URL: postgres://user:password@host:5432/database.";
  return new OptionInvalid("The PostgreSQL server asks for a password, and none is given.", hint, { cause });
}

function closed(): Closed {
  return new Closed("The database connection is closed.", "Open a new one; nothing can be done with this one.");
}

/** Resolves when `wait` calls back, or after `ms`. */
async function within(ms: number, wait: (done: () => void) => void): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  await new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms);
    wait(resolve);
  });
  clearTimeout(timer);
}
