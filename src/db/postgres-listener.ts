// LISTEN on a connection of its own, for as long as it takes:
// - it reconnects with jittered backoff, and calls onReady each time notifications are known to arrive again;
// - "known" means a canary came back: a notification to a channel only this listener knows, sent through the pool, at
//   the start and every 30 s. A pooler in transaction mode accepts LISTEN and delivers nothing; a dead socket is quiet;
// - onDown is called once per outage, onTurn whenever it knows when it will do something next; what the handlers throw goes to onTrouble.
import { randomBytes } from "node:crypto";
import { escapeIdentifier, type Notification } from "pg";
import { OptionInvalid } from "../errors.ts";
import { formatDuration } from "../shared/duration.ts";
import { jitter } from "../shared/sleep.ts";
import type { Listener, ListenHandlers } from "./db.ts";
import { startDeadline } from "./deadline.ts";
import { PostgresConnection } from "./postgres-connection.ts";
import type { PostgresSettings } from "./postgres-options.ts";
import { asError, reasonOf } from "./retryable.ts";

const FIRST_DELAY_MS = 100;
const LONGEST_DELAY_MS = 5_000;
const LONGEST_CHANNEL_BYTES = 63;
const LEAVE_MS = 500;

export const NOTIFY = "select pg_notify($1, $2)";

export class PostgresListener implements Listener {
  readonly #settings: PostgresSettings;
  readonly #channel: string;
  readonly #handlers: ListenHandlers;
  readonly #notify: (channel: string, payload: string, timeoutMs: number) => Promise<void>;
  readonly #canaryChannel = `holdfast_canary_${randomBytes(12).toString("hex")}`;
  #connection: PostgresConnection | undefined;
  #state: "new" | "ready" | "down" | "closed" = "new";
  #failures = 0;
  #timer: NodeJS.Timeout | undefined;
  #canaryArrived: ((payload: string) => void) | undefined;

  constructor(
    settings: PostgresSettings,
    channel: string,
    handlers: ListenHandlers,
    notify: (channel: string, payload: string, timeoutMs: number) => Promise<void>,
  ) {
    checkChannel(channel);
    this.#settings = settings;
    this.#channel = channel;
    this.#handlers = handlers;
    this.#notify = notify;
  }

  /** One attempt. When it fails onDown was called, and the next attempt is on its way. */
  async start(): Promise<void> {
    const connection = new PostgresConnection(this.#settings);
    this.#connection = connection;
    const { connectTimeoutMs, canaryTimeoutMs } = this.#settings;
    this.#turn(2 * connectTimeoutMs + canaryTimeoutMs);
    connection.on("notification", (message) => this.#hear(message));
    try {
      await connection.connect();
      const [channel, canary] = [escapeIdentifier(this.#channel), escapeIdentifier(this.#canaryChannel)];
      await connection.run(`listen ${channel}; listen ${canary}`, undefined, connectTimeoutMs);
      await this.#canary(connection);
    } catch (error) {
      this.#fail(connection, asError(error));
      return;
    }
    if (this.#connection !== connection) return;
    if (connection.lost) return this.#fail(connection, connection.lost);
    connection.once("end", () => this.#fail(connection, connection.lost ?? new Error("Connection terminated")));
    this.#state = "ready";
    this.#guard(() => this.#handlers.onReady?.());
    this.#watch(connection);
  }

  async close(): Promise<void> {
    const connection = this.#connection;
    this.#connection = undefined;
    this.#state = "closed";
    clearTimeout(this.#timer);
    await connection?.leave(LEAVE_MS);
  }

  #hear({ channel, payload = "" }: Notification): void {
    if (channel === this.#channel) this.#guard(() => this.#handlers.onMessage(payload));
    else if (channel === this.#canaryChannel) this.#canaryArrived?.(payload);
  }

  #watch(connection: PostgresConnection): void {
    if (this.#connection !== connection) return;
    this.#turn(this.#settings.canaryIntervalMs + this.#settings.canaryTimeoutMs);
    this.#timer = setTimeout(() => {
      void this.#check(connection);
    }, this.#settings.canaryIntervalMs);
  }

  async #check(connection: PostgresConnection): Promise<void> {
    try {
      await this.#canary(connection);
    } catch (error) {
      this.#fail(connection, asError(error));
      return;
    }
    // Only now: a connection that dies soon after each start keeps its long delays.
    this.#failures = 0;
    this.#watch(connection);
  }

  /** Resolves when a notification to ourselves has arrived. */
  #canary(connection: PostgresConnection): Promise<void> {
    const limit = this.#settings.canaryTimeoutMs;
    const sent = randomBytes(12).toString("hex");
    return new Promise((resolve, reject) => {
      const settle = (error?: Error): void => {
        stop();
        connection.removeListener("end", ended);
        if (error) reject(error);
        else resolve();
      };
      const ended = (): void => settle(connection.lost);
      const stop = startDeadline(limit, () => {
        settle(new Error(`A notification to ourselves did not arrive within ${formatDuration(limit)}.`));
      });
      connection.on("end", ended);
      this.#canaryArrived = (payload) => {
        if (payload === sent) settle();
      };
      // The pool may be busy or broken, which says nothing about this connection: then it asks for itself.
      const half = Math.ceil(limit / 2);
      this.#notify(this.#canaryChannel, sent, half)
        .catch(() => connection.run(NOTIFY, [this.#canaryChannel, sent], half))
        .catch(settle);
    });
  }

  #fail(connection: PostgresConnection, error: Error): void {
    if (this.#connection !== connection) return;
    this.#connection = undefined;
    clearTimeout(this.#timer);
    connection.destroy(error);
    this.#settings.onTrouble(error);
    if (this.#state !== "down") {
      this.#state = "down";
      this.#guard(() => this.#handlers.onDown?.(reasonOf(error)));
    }
    const delay = jitter(Math.min(LONGEST_DELAY_MS, FIRST_DELAY_MS * 2 ** this.#failures));
    this.#failures += 1;
    if (this.#isClosed()) return;
    this.#turn(delay);
    this.#timer = setTimeout(() => void this.start(), delay);
  }

  /** A handler may have closed us. */
  #isClosed(): boolean {
    return this.#state === "closed";
  }

  #turn(nextInMs: number): void {
    this.#guard(() => this.#handlers.onTurn?.(nextInMs));
  }

  #guard(call: () => void): void {
    try {
      call();
    } catch (error) {
      this.#settings.onTrouble(asError(error));
    }
  }
}

function checkChannel(channel: string): void {
  const bytes = Buffer.byteLength(channel);
  if (bytes > 0 && bytes <= LONGEST_CHANNEL_BYTES && !channel.includes("\0")) return;
  // PostgreSQL would cut a longer name off without an error.
  const message = `The channel ${JSON.stringify(channel.slice(0, 80))} has ${bytes} bytes, or a NUL.`;
  throw new OptionInvalid(message, `Write 1 to ${LONGEST_CHANNEL_BYTES} bytes without NUL.`);
}
