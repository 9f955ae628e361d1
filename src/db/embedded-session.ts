// One session with the engine: node-postgres speaking to PGlite over a Link instead of a socket. Values, rows and errors
// are therefore those of the server tier by construction.
//
// Promises: statements run in the order they were given; several may be on their way at once, and what is given while
// the engine works travels together in the next message; when the session ends every statement on its way fails with
// the reason; a statement that goes on after its time is told to onStuck.
import { Client, DatabaseError, Query, type QueryResult, type ResultBuilder } from "pg";
import { OptionInvalid } from "../errors.ts";
import type { Deadline } from "./embedded-deadline.ts";
import type { Link } from "./embedded-link.ts";
import { Wire } from "./embedded-wire.ts";
import { types } from "./postgres-types.ts";

export interface SessionEvents {
  onNotification(channel: string, payload: string): void;
  /** A statement whose time is over has been running for a while since. */
  onStuck(): void;
}

export interface Ran<Row> {
  rows: Row[];
  rowCount: number;
  command: string;
  /** After the statement. I: no transaction is open; T: one is; E: one is, and it has failed. */
  status: "I" | "T" | "E";
}

interface OnItsWay {
  deadline: Deadline;
  /** Since when nothing is before it. */
  firstSince: number;
}

/** A statement that ends by itself soon after its time costs less than an engine that starts again. */
const GRACE_MS = 1_000;
const WATCH_MS = 200;
/** The protocol counts values in 16 bits, and pg would let the count wrap around. */
const MOST_VALUES = 65_535;

export class Session {
  /** Why it is over. */
  ended: Error | null = null;
  readonly #client: Client;
  readonly #wire: Wire;
  readonly #events: SessionEvents;
  readonly #onTheirWay: OnItsWay[] = [];
  #watch: NodeJS.Timeout | null = null;

  constructor(link: Link, events: SessionEvents) {
    this.#events = events;
    this.#wire = new Wire(link);
    this.#client = new Client({
      stream: () => this.#wire,
      user: "postgres",
      password: "",
      host: "embedded",
      port: 5432,
      database: "postgres",
      ssl: false,
      pipeline: true,
      types,
    });
    this.#client.on("error", () => {});
    this.#client.on("notification", ({ channel, payload = "" }) => events.onNotification(channel, payload));
  }

  async connect(): Promise<void> {
    await this.#client.connect();
  }

  /** One statement. */
  async run<Row>(deadline: Deadline, text: string, values: readonly unknown[] = []): Promise<Ran<Row>> {
    if (values.length > MOST_VALUES) {
      const hint = "Send the values as one array or as JSON, or in several statements.";
      throw new OptionInvalid(`A statement has ${values.length} values; PostgreSQL takes ${MOST_VALUES}.`, hint);
    }
    return this.#submit<Row>(deadline, text, [...values]);
  }

  /** Several statements in one text. */
  async runScript(deadline: Deadline, text: string): Promise<Ran<unknown>> {
    return this.#submit(deadline, text, null);
  }

  end(reason: Error): void {
    this.ended ??= reason;
    this.#wire.destroy(reason);
    this.#stopWatching();
  }

  async #submit<Row>(deadline: Deadline, text: string, values: unknown[] | null): Promise<Ran<Row>> {
    try {
      return await this.#send<Row>(deadline, text, values);
    } catch (error) {
      if (this.ended) throw this.ended;
      // Its stack would begin at the reply; the caller's says more.
      if (error instanceof DatabaseError) Error.captureStackTrace(error);
      throw error;
    }
  }

  #send<Row>(deadline: Deadline, text: string, values: unknown[] | null): Promise<Ran<Row>> {
    if (this.ended) return Promise.reject(this.ended);
    deadline.expired.catch(() => this.#startWatching());
    const onItsWay: OnItsWay = { deadline, firstSince: performance.now() };
    this.#onTheirWay.push(onItsWay);
    return new Promise((resolve, reject) => {
      // pg calls it a second time in some failures.
      const answered: Answered = (error, result) => {
        this.#arrived(onItsWay);
        if (error) {
          reject(error);
          return;
        }
        const last: QueryResult<Row & object> | undefined = Array.isArray(result) ? result.at(-1) : result;
        // The status now, not after an await: the replies to later statements may be in the same bytes.
        const status = this.#client.getTransactionStatus() ?? "I";
        resolve({ rows: last?.rows ?? [], rowCount: last?.rowCount ?? 0, command: last?.command ?? "", status });
      };
      this.#client.query(makeQuery(text, values, answered));
    });
  }

  #arrived(statement: OnItsWay): void {
    const at = this.#onTheirWay.indexOf(statement);
    if (at >= 0) this.#onTheirWay.splice(at, 1);
    const first = this.#onTheirWay[0];
    if (first && at === 0) first.firstSince = performance.now();
  }

  #startWatching(): void {
    if (this.ended) return;
    this.#watch ??= setInterval(() => {
      const first = this.#onTheirWay[0];
      if (!this.#onTheirWay.some(({ deadline }) => deadline.over)) this.#stopWatching();
      else if (first?.deadline.over && performance.now() - first.firstSince > GRACE_MS) {
        this.#stopWatching();
        this.#events.onStuck();
      }
    }, WATCH_MS).unref();
  }

  #stopWatching(): void {
    if (this.#watch) clearInterval(this.#watch);
    this.#watch = null;
  }
}

type Answered = (error: Error | null | undefined, result: ResultBuilder | ResultBuilder[]) => void;

/** With values, even if there are none, one statement. Left to itself pg would take several when there are none. */
function makeQuery(text: string, values: unknown[] | null, answered: Answered): Query {
  if (values === null) return new Query(text, answered);
  if (values.length > 0) return new Query(text, values, answered);
  return Object.assign(new Query(text, answered), { queryMode: "extended" });
}
