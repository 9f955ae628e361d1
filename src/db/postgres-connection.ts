// One connection to PostgreSQL that keeps its promises when the network does not:
// - every statement settles within its timeout; the timeout destroys the socket at once and cancels the statement;
// - what was given up and is not sent yet is never sent: the socket is reset (where there is no TLS), or the kernel would go on
//   trying for minutes and deliver a statement long after it was sent again by another way;
// - a connection that broke says so in `lost` and runs nothing more;
// - 'error' events have a listener from the first moment, so that none of them ends the process.
import { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { TLSSocket } from "node:tls";
import { Client, type Query, type QueryResult } from "pg";
import { Closed, DatabaseUnavailable, OptionInvalid } from "../errors.ts";
import { formatDuration } from "../shared/duration.ts";
import { startDeadline } from "./deadline.ts";
import { cancelStatement } from "./postgres-cancel.ts";
import type { PostgresSettings } from "./postgres-options.ts";
import { type Answered, makeCopy, makeQuery } from "./postgres-query.ts";
import {
  codeOf,
  endsConnection,
  isConnectionTrouble,
  READ_ONLY_TRANSACTION,
  reasonOf,
  takesNoWrites,
} from "./retryable.ts";

const MAY_HAVE_TAKEN_EFFECT = "The statement may or may not have taken effect.";

const HINT = "Check that the server runs and can be reached from here. The call may be made again.";
const WRITES_HINT =
  "Check whether it is a replica, was switched to read-only, or its disk is full. The call may be made again.";
/** The protocol counts parameters in 16 bits, and pg would let the count wrap around. */
const MOST_VALUES = 65_535;

export class PostgresConnection extends Client {
  /** Why nothing more can be run here. */
  lost: Error | undefined;
  /** Handed out by the pool. */
  busy = false;
  /** When a statement last succeeded; 0 before the first. */
  answeredAt = 0;
  // What pg has, and its types leave out.
  declare readonly processID: number | null;
  declare readonly secretKey: number | null;
  declare readonly sslNegotiation: string;
  declare readonly connectionParameters: { query_timeout?: number };
  declare binary: boolean;
  readonly #address: string;
  readonly #settings: PostgresSettings;
  /** Which of the hosts it is connected to. */
  readonly #host: number;
  readonly #onSilence: ((sentAt: number) => void) | undefined;

  /** `onSilence` is told of a timeout: nothing was heard here since `sentAt` (of performance.now()). */
  constructor(settings: PostgresSettings, onSilence?: (sentAt: number) => void) {
    const host = settings.hosts.at;
    super(settings.clients[host]);
    this.#settings = settings;
    this.#host = host;
    this.#address = settings.addresses[host]!;
    this.#onSilence = onSilence;
    // pg's own timeout, which a URL can switch on, leaves a connection behind that is out of step.
    this.connectionParameters.query_timeout = 0;
    this.binary = false;
    this.on("error", (error) => {
      this.lost ??= error;
    });
    this.on("end", () => {
      this.lost ??= new Error("Connection terminated");
    });
  }

  /** pg's own, which its types leave out. Databases and roles may have another DateStyle; poolers let this one pass. */
  getStartupConf(): object {
    const inherited = Reflect.get(Client.prototype, "getStartupConf") as (this: Client) => object;
    return { ...inherited.call(this), DateStyle: "ISO" };
  }

  /** With several hosts, only the primary will do. */
  override connect(): Promise<Client>;
  override connect(callback: ((error: Error) => void) | ((error: null, client: Client) => void)): void;
  override connect(given?: ((error: Error) => void) | ((error: null, client: Client) => void)): Promise<Client> | void {
    if (this.#settings.hosts.count === 1) return given ? super.connect(given) : super.connect();
    const connected = this.#connectToPrimary();
    if (!given) return connected.then(() => this);
    const done = given as (error: Error | null, client: Client) => void;
    connected.then(
      () => done(null, this),
      (error: Error) => done(error, this),
    );
  }

  async #connectToPrimary(): Promise<void> {
    const { hosts, connectTimeoutMs } = this.#settings;
    try {
      await super.connect();
      const { rows } = await this.run("select pg_is_in_recovery() as standby", [], connectTimeoutMs);
      if (!(rows as { standby: boolean }[])[0]!.standby) return;
      throw this.#unavailable("is a standby", "The statement was not sent.", undefined);
    } catch (error) {
      hosts.leave(this.#host);
      this.destroy(error as Error);
      throw error;
    }
  }

  /** Ends the connection now, without a word to a server that may not be listening. */
  destroy(why: Error): void {
    this.lost ??= why;
    const { stream } = this.connection;
    if (canBeReset(stream)) stream.resetAndDestroy();
    else stream.destroy();
  }

  /** The same while a statement runs: the server is asked to stop it. */
  abandon(why: Error): void {
    this.destroy(why);
    cancelStatement(this);
  }

  /** Says goodbye, and destroys the socket if that takes longer than `ms`. */
  async leave(ms: number): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const limit = new Promise((resolve) => (timer = setTimeout(resolve, ms)));
    await Promise.race([this.end(), limit]).catch(() => {});
    clearTimeout(timer);
    this.destroy(new Error("Connection terminated"));
  }

  /** Without `values` several statements are allowed in `text`. `outcome` ends the message if the connection breaks. */
  run(
    text: string,
    values: readonly unknown[] | undefined,
    timeoutMs: number,
    outcome = MAY_HAVE_TAKEN_EFFECT,
  ): Promise<QueryResult> {
    if (values && values.length > MOST_VALUES) return Promise.reject(tooMany(values.length));
    return this.#send((answered) => makeQuery(text, values, answered), timeoutMs, outcome);
  }

  /** `text` is a COPY FROM STDIN. The parts are its lines, in any pieces. */
  copyIn(text: string, parts: Iterable<string>, timeoutMs: number): Promise<QueryResult> {
    return this.#send((answered) => makeCopy(text, parts, answered), timeoutMs, MAY_HAVE_TAKEN_EFFECT);
  }

  #send(make: (answered: Answered) => Query, timeoutMs: number, outcome: string): Promise<QueryResult> {
    if (this.lost) {
      const notSent = outcome === MAY_HAVE_TAKEN_EFFECT ? "The statement was not sent." : outcome;
      return Promise.reject(this.#unavailable("is not connected any more", notSent, this.lost));
    }
    return new Promise((resolve, reject) => {
      const sentAt = performance.now();
      const stop = startDeadline(timeoutMs, () => {
        const what = `did not answer within ${formatDuration(timeoutMs)}`;
        const error = this.#unavailable(what, outcome, this.lost);
        this.abandon(error);
        this.#onSilence?.(sentAt);
        reject(error);
      });
      // pg calls this a second time in some failures, and again when the socket of a timed-out call is destroyed.
      const answered = (error: Error | undefined, result: QueryResult): void => {
        stop();
        if (!error) {
          this.answeredAt = performance.now();
          resolve(result);
          return;
        }
        const lost = this.lost;
        if (endsConnection(error)) this.destroy(error);
        // It was the primary when we connected.
        if (codeOf(error) === READ_ONLY_TRANSACTION) this.#settings.hosts.leave(this.#host);
        if (isConnectionTrouble(error)) reject(this.#unavailable("broke the connection", outcome, lost ?? error));
        else if (takesNoWrites(error))
          reject(this.#unavailable("takes no writes", "Nothing was written.", error, WRITES_HINT));
        else reject(error);
      };
      this.query(make(answered));
    });
  }

  #unavailable(what: string, outcome: string, cause: Error | undefined, hint = HINT): Error {
    if (cause instanceof Closed) return cause;
    const why = cause ? ` (${reasonOf(cause)})` : "";
    return new DatabaseUnavailable(`PostgreSQL at ${this.#address} ${what}${why}. ${outcome}`, hint, { cause });
  }
}

/** Where Node can: over TCP without TLS (below it, it crashes), and before end(), after which it leaks the handle. */
function canBeReset(stream: Duplex): stream is Socket {
  if (!(stream instanceof Socket) || stream instanceof TLSSocket || stream.remoteAddress === undefined) return false;
  return !stream.connecting && !stream.writableEnded && !stream.destroyed;
}

function tooMany(count: number): OptionInvalid {
  const hint = "Send the values as one array or as JSON, or in several statements.";
  return new OptionInvalid(`A statement has ${count} values; PostgreSQL takes ${MOST_VALUES}.`, hint);
}
