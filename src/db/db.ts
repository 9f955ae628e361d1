// The seam to the database. Everything above speaks to this interface; only this folder knows `pg` and PGlite.
//
// Promises of both implementations (test/contract runs one suite on both):
// - every call settles in bounded time: its own timeout, or the default of the Db;
// - a connection that timed out or broke is never used again;
// - losing the database is an error of the call (DatabaseUnavailable), never an event that ends the process;
// - int8 arrives as a string, timestamptz as a Date, json/jsonb as parsed JSON, uuid/text/numeric as strings,
//   int2/int4/float8 as numbers, bytea as a Buffer/Uint8Array.

export interface QueryResult<Row = Record<string, unknown>> {
  rows: Row[];
  /** Rows returned or changed. */
  rowCount: number;
}

/** Anything that can run one parameterised statement: a Db, a transaction of it, or a caller's own connection. */
export interface Queryable {
  query<Row = Record<string, unknown>>(text: string, values?: readonly unknown[]): Promise<QueryResult<Row>>;
}

export interface QueryOptions {
  /** The call fails with DatabaseUnavailable after this long; its connection is destroyed. */
  timeoutMs?: number;
}

export interface Listener {
  close(): Promise<void>;
}

export interface ListenHandlers {
  /** A notification arrived. */
  onMessage(payload: string): void;
  /** Listening began, or began again after a gap in which notifications may have been lost. */
  onReady?(): void;
  /** Listening stopped working (connection lost, or a pooler swallows notifications): polling is all there is. */
  onDown?(reason: string): void;
  /** The listener is alive, connected or not, and will be heard of again in so many milliseconds. Server tier only. */
  onTurn?(nextInMs: number): void;
}

/** How busy the way to the database is. */
export interface DbLoad {
  /** The most connections there may be. */
  most: number;
  busy: number;
  idle: number;
  /** Calls that wait for a connection. */
  waiting: number;
}

export interface Db extends Queryable {
  readonly tier: "server" | "embedded";
  query<Row = Record<string, unknown>>(
    text: string,
    values?: readonly unknown[],
    options?: QueryOptions,
  ): Promise<QueryResult<Row>>;
  /**
   * Sends the lines of a COPY FROM STDIN, in any pieces, in a transaction of its own. If making the pieces throws, that is
   * the error and nothing is stored. Server tier only: embedded, nothing would be gained.
   */
  readonly copyIn: ((text: string, parts: Iterable<string>, options?: QueryOptions) => Promise<void>) | undefined;
  /**
   * Runs `work` between BEGIN and COMMIT on one connection. ROLLBACK when it throws. When COMMIT itself fails with a
   * broken connection the outcome is unknown, and the error says so (`DatabaseUnavailable`).
   */
  transaction<T>(work: (tx: Queryable) => Promise<T>, options?: QueryOptions): Promise<T>;
  /** Several statements in one text, without parameters: migrations and maintenance. */
  script(text: string, options?: QueryOptions): Promise<void>;
  /** LISTEN on a connection of its own, which reconnects by itself. In the embedded tier, in the same process. */
  listen(channel: string, handlers: ListenHandlers): Promise<Listener>;
  /**
   * Throws TransactionNested where a call would wait for the transaction it is made in (one session, embedded tier). For
   * callers that hand their statement to somebody else, who sends it from outside.
   */
  assertOutside(): void;
  load(): DbLoad;
  /** NOTIFY outside any transaction. */
  notify(channel: string, payload: string): Promise<void>;
  close(): Promise<void>;
}
