// One session with the engine: node-postgres speaking to PGlite over a Link instead of a socket. Values, rows and errors
// are therefore those of the server tier by construction.
//
// Promises: statements run in the order they were given; several may be on their way at once, and what is given while
// the engine works travels together in the next message; when the engine dies every statement that was on its way
// fails.
import { Duplex } from "node:stream";
import pg from "pg";
import type { Link } from "./embedded-link.ts";
import { types } from "./postgres-types.ts";

export interface Notification {
  channel: string;
  payload: string;
}

interface Statement {
  text: string;
  values?: unknown[] | undefined;
  queryMode?: "extended";
}

/** I: no transaction is open; T: one is; E: one is, and it has failed. */
export type TransactionStatus = "I" | "T" | "E";

export interface Ran {
  rows: unknown[];
  rowCount: number;
  command: string;
  /** After the statement. */
  status: TransactionStatus;
}

export class Session {
  /** Why it is over. */
  ended: Error | null = null;
  readonly #client: pg.Client;
  readonly #wire: Wire;

  constructor(link: Link, onNotification: (notification: Notification) => void) {
    this.#wire = new Wire(link);
    this.#client = new pg.Client({
      stream: () => this.#wire,
      user: "postgres",
      database: "postgres",
      host: "embedded",
      port: 5432,
      password: "",
      ssl: false,
      pipeline: true,
      types,
    });
    this.#client.on("error", () => {});
    this.#client.on("notification", ({ channel, payload }) => onNotification({ channel, payload: payload ?? "" }));
  }

  async connect(): Promise<void> {
    await this.#client.connect();
  }

  /** One statement. */
  run(text: string, values?: readonly unknown[]): Promise<Ran> {
    // Extended also without values: one statement per text, as with values.
    return this.#submit({ text, values: values as unknown[] | undefined, queryMode: "extended" });
  }

  /** Several statements in one text. */
  runScript(text: string): Promise<Ran> {
    return this.#submit({ text });
  }

  end(reason: Error): void {
    this.ended ??= reason;
    this.#wire.destroy(reason);
  }

  async #submit(config: Statement): Promise<Ran> {
    try {
      return await this.#send(config);
    } catch (error) {
      // Its stack would begin at the reply; the caller's says more.
      if (error instanceof pg.DatabaseError) Error.captureStackTrace(error);
      throw error;
    }
  }

  #send(config: Statement): Promise<Ran> {
    return new Promise((resolve, reject) => {
      if (this.ended) {
        reject(this.ended);
        return;
      }
      const done = (error: Error | null, result: pg.QueryResult | pg.QueryResult[]): void => {
        if (error) {
          reject(error);
          return;
        }
        const { rows, rowCount, command } = Array.isArray(result) ? result.at(-1)! : result;
        // Now, not after an await: the replies to later statements may be in the same bytes.
        const status = (this.#client.getTransactionStatus() ?? "I") as TransactionStatus;
        resolve({ rows, rowCount: rowCount ?? 0, command, status });
      };
      this.#client.query(config as pg.QueryConfig, done as (error: Error, result: pg.QueryResult) => void);
    });
  }
}

/** More rows than this are parsed in several turns of the event loop. */
const SLICE = 256 * 1024;

/** What `pg` takes for its socket. */
class Wire extends Duplex {
  readonly #link: Link;
  #written: ((error?: Error | null) => void) | null = null;

  constructor(link: Link) {
    super();
    this.#link = link;
    link.onReply = (reply) => this.#receive(Buffer.from(reply.buffer, reply.byteOffset, reply.byteLength));
  }

  connect(): void {
    setImmediate(() => this.emit("connect"));
  }

  setNoDelay(): void {}
  setKeepAlive(): void {}
  ref(): void {}
  unref(): void {}

  override _read(): void {}

  override _write(chunk: Buffer, _encoding: string, written: (error?: Error | null) => void): void {
    this.#send([chunk], written);
  }

  override _writev(chunks: { chunk: Buffer }[], written: (error?: Error | null) => void): void {
    this.#send(
      chunks.map(({ chunk }) => chunk),
      written,
    );
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#written = null;
    done(error);
  }

  /** One message at a time: `written` comes with its reply, and Node keeps together what is written until then. */
  #send(chunks: Buffer[], written: (error?: Error | null) => void): void {
    this.#written = written;
    // A copy with a buffer of its own: it is handed over to the thread.
    const message = new Uint8Array(chunks.reduce((size, chunk) => size + chunk.length, 0));
    let at = 0;
    for (const chunk of chunks) {
      message.set(chunk, at);
      at += chunk.length;
    }
    this.#link.send(message);
  }

  #receive(reply: Buffer): void {
    if (this.destroyed) return;
    this.push(reply.subarray(0, SLICE));
    if (reply.length > SLICE) {
      setImmediate(() => this.#receive(reply.subarray(SLICE)));
      return;
    }
    const written = this.#written;
    this.#written = null;
    written?.();
  }
}
