// One transaction on the one session. It has the session to itself, so it gives it back as soon as nothing more will
// come of it: at its end, when a statement of it took too long, when its own code is silent for too long. Whatever its
// code does after that is refused.
import { Closed, DatabaseUnavailable, OptionInvalid } from "../errors.ts";
import { formatDuration } from "../shared/duration.ts";
import type { QueryResult, Queryable } from "./db.ts";
import { Deadline } from "./embedded-deadline.ts";
import type { Ran, Session } from "./embedded-session.ts";
import { codeOf, IN_FAILED_TRANSACTION } from "./retryable.ts";

export interface TransactionLimits {
  /** For each statement. */
  timeoutMs: number;
  /** Between two statements. */
  idleMs: number;
}

export class Transaction implements Queryable {
  /** Its code may still be running, and a call of it to the Db would wait for ever. */
  open = true;
  readonly #session: Session;
  readonly #limits: TransactionLimits;
  readonly #release: () => void;
  readonly #abandoned: Promise<never>;
  #abandon: (reason: Error) => void = () => {};
  /** Why no more statements are taken. Made when asked for: an error costs more than a statement. */
  #refusal: (() => Error) | null = null;
  /** Why PostgreSQL would answer COMMIT with a silent rollback. */
  #failure: unknown;
  #last: Promise<unknown> = Promise.resolve();
  #busy = 0;
  #idle: NodeJS.Timeout | undefined;

  constructor(session: Session, limits: TransactionLimits, release: () => void) {
    this.#session = session;
    this.#limits = limits;
    this.#release = release;
    this.#abandoned = new Promise((_, reject) => (this.#abandon = reject));
    this.#abandoned.catch(() => {});
  }

  async run<T>(work: () => Promise<T>): Promise<T> {
    // Not waited for: the first statement travels with it.
    this.#last = this.#statement("begin").catch(() => {});
    try {
      const value = await Promise.race([work(), this.#abandoned]);
      await this.#quiet();
      if (this.#refusal) throw this.#refusal();
      await this.#commit();
      return value;
    } catch (error) {
      this.#giveUp(isOver);
      throw error;
    } finally {
      this.open = false;
      clearTimeout(this.#idle);
    }
  }

  async query<Row>(text: string, values?: readonly unknown[]): Promise<QueryResult<Row>> {
    if (this.#refusal) throw this.#refusal();
    const answer = this.#statement<Row>(text, values);
    this.#last = answer.catch(() => {});
    const { rows, rowCount, status } = await answer;
    if (status !== "I") return { rows, rowCount };
    const hint = "Let the callback return to commit, or throw to roll back.";
    const error = new OptionInvalid("The statement ended the transaction that it was part of.", hint);
    this.#giveUp(() => error);
    throw error;
  }

  async #statement<Row>(text: string, values?: readonly unknown[]): Promise<Ran<Row>> {
    clearTimeout(this.#idle);
    this.#busy += 1;
    const deadline = new Deadline(this.#limits.timeoutMs, "in transaction");
    try {
      return await Promise.race([this.#session.run<Row>(deadline, text, values), deadline.expired]);
    } catch (error) {
      if (codeOf(error) !== IN_FAILED_TRANSACTION) this.#failure = error;
      if (error instanceof DatabaseUnavailable) this.#giveUp(() => error);
      throw error;
    } finally {
      deadline.clear();
      this.#busy -= 1;
      if (this.#busy === 0 && this.open) this.#startIdling();
    }
  }

  #startIdling(): void {
    clearTimeout(this.#idle);
    this.#idle = setTimeout(() => {
      const message = `A transaction was rolled back: its code sent nothing for ${formatDuration(this.#limits.idleMs)}.`;
      const error = new DatabaseUnavailable(message, "Wait for other things before the transaction, not inside it.");
      this.#giveUp(() => error);
      this.#abandon(this.#refusal?.() ?? error);
    }, this.#limits.idleMs);
  }

  /** Until the statements that nobody waited for are done, too. */
  async #quiet(): Promise<void> {
    let last: unknown;
    do {
      last = this.#last;
      await last;
    } while (last !== this.#last);
  }

  async #commit(): Promise<void> {
    this.open = false;
    clearTimeout(this.#idle);
    this.#refusal = isOver;
    const deadline = new Deadline(this.#limits.timeoutMs, "committing");
    const committing = this.#session.run(deadline, "commit");
    committing.then(this.#release, this.#release);
    try {
      const { command } = await Promise.race([committing, deadline.expired]);
      if (command !== "COMMIT") throw this.#failure;
    } catch (error) {
      if (this.#session.ended === null || !(error instanceof DatabaseUnavailable)) throw error;
      const message = `${error.message} It happened during COMMIT, so the outcome is unknown.`;
      throw new DatabaseUnavailable(message, "Look whether it took effect before doing it again.", { cause: error });
    } finally {
      deadline.clear();
    }
  }

  /** Rolls back, unless that or a COMMIT was sent already. */
  #giveUp(reason: () => Error): void {
    if (this.#refusal) return;
    this.#refusal = reason;
    const deadline = new Deadline(this.#limits.timeoutMs, "in transaction");
    const over = (): void => {
      deadline.clear();
      this.#release();
    };
    this.#session.run(deadline, "rollback").then(over, over);
  }
}

function isOver(): Closed {
  return new Closed("The transaction is over.", "Wait for every statement inside its callback.");
}
