// One transaction on one connection. Statements run one after the other, also when the caller did not wait for them;
// once the transaction is over, or its connection is lost, every further statement is refused at once.
import { Closed, DatabaseUnavailable } from "../errors.ts";
import type { Queryable, QueryResult } from "./db.ts";
import { startDeadline } from "./deadline.ts";
import type { PostgresConnection } from "./postgres-connection.ts";
import { asError, codeOf, IN_FAILED_TRANSACTION, reasonOf } from "./retryable.ts";

const NOTHING_COMMITTED = "Its transaction was not committed.";
const COMMIT_UNKNOWN =
  "It happened during COMMIT, so the outcome is unknown: the transaction may or may not have been committed.";
/** The caller's own error waits for this. */
const ROLLBACK_LIMIT_MS = 2_000;
/** And for a statement that still runs, whose answer nobody wants any more: then its connection is given up. */
const LAST_ANSWER_MS = 500;
const ROLLED_BACK = "The transaction was rolled back while a statement of it was still running.";

export async function runTransaction<T>(
  connection: PostgresConnection,
  work: (tx: Queryable) => Promise<T>,
  timeoutMs: number,
  idleTimeoutMs: number,
): Promise<T> {
  // One round trip. SET LOCAL ends with the transaction, so it is safe behind a pooler. Whatever level the database or the role has
  // as its default: our statements wait for each other's rows and look again, and above this level they would fail instead.
  const idle = idleTimeoutMs > 0 ? `; set local idle_in_transaction_session_timeout = ${idleTimeoutMs}` : "";
  const begin = `begin isolation level read committed${idle}`;
  await connection.run(begin, undefined, timeoutMs, NOTHING_COMMITTED);
  const tx = new Transaction(connection, timeoutMs);
  let result: T;
  try {
    result = await work(tx);
  } catch (error) {
    await tx.rollback();
    throw error;
  }
  await tx.commit();
  return result;
}

class Transaction implements Queryable {
  readonly #connection: PostgresConnection;
  readonly #timeoutMs: number;
  #over = false;
  #last: Promise<unknown> = Promise.resolve();
  /** The statement that spoilt the transaction: PostgreSQL answers its COMMIT with a silent rollback. */
  #failure: unknown;

  constructor(connection: PostgresConnection, timeoutMs: number) {
    this.#connection = connection;
    this.#timeoutMs = timeoutMs;
  }

  query<Row>(text: string, values?: readonly unknown[]): Promise<QueryResult<Row>> {
    const answer = this.#last.then(() => this.#run<Row>(text, values));
    this.#last = answer.catch(() => {});
    return answer;
  }

  async #run<Row>(text: string, values: readonly unknown[] = []): Promise<QueryResult<Row>> {
    if (this.#over) {
      throw new Closed("The transaction is over.", "Wait for every statement before the function you gave it returns.");
    }
    try {
      const { rows, rowCount } = await this.#connection.run(text, values, this.#timeoutMs, NOTHING_COMMITTED);
      return { rows, rowCount: rowCount ?? 0 };
    } catch (error) {
      if (codeOf(error) !== IN_FAILED_TRANSACTION) this.#failure = error;
      throw error;
    }
  }

  async commit(): Promise<void> {
    let last: unknown;
    do {
      last = this.#last;
      await last;
    } while (last !== this.#last);
    this.#over = true;
    const { lost } = this.#connection;
    if (lost) throw lost instanceof Closed ? lost : lostBeforeCommit(lost);
    const { command } = await this.#connection.run("commit", undefined, this.#timeoutMs, COMMIT_UNKNOWN);
    if (command !== "COMMIT" && this.#failure !== undefined) throw this.#failure;
  }

  async rollback(): Promise<void> {
    this.#over = true;
    const stop = startDeadline(LAST_ANSWER_MS, () =>
      this.#connection.abandon(
        new Closed(ROLLED_BACK, "Wait for every statement before the function you gave it ends."),
      ),
    );
    await this.#last;
    stop();
    if (this.#connection.lost) return;
    try {
      await this.#connection.run("rollback", undefined, Math.min(this.#timeoutMs, ROLLBACK_LIMIT_MS));
    } catch (error) {
      this.#connection.destroy(asError(error));
    }
  }
}

function lostBeforeCommit(cause: Error): DatabaseUnavailable {
  const message = `The connection was lost before COMMIT (${reasonOf(cause)}). ${NOTHING_COMMITTED}`;
  return new DatabaseUnavailable(message, "The transaction may be run again.", { cause });
}
