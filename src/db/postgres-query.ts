// What is sent to PostgreSQL, as `pg` takes it: a statement, or a COPY with its lines.
import { type Connection, Query, type QueryResult } from "pg";
import { asError } from "./retryable.ts";

export type Answered = (error: Error | undefined, result: QueryResult) => void;

/** Never a named statement. Without values pg would fall back to the protocol that takes several statements. */
export function makeQuery(text: string, values: readonly unknown[] | undefined, answered: Answered): Query {
  if (values === undefined) return new Query(text, answered);
  if (values.length > 0) return new Query(text, [...values], answered);
  const config = { text, queryMode: "extended" };
  return new Query(config, [], answered);
}

export function makeCopy(text: string, parts: Iterable<string>, answered: Answered): Query {
  return new CopyQuery(text, parts, answered);
}

/** What pg has, and its types leave out. */
interface CopyConnection extends Connection {
  sendCopyFromChunk(chunk: Buffer): void;
  endCopyFrom(): void;
  sendCopyFail(why: string): void;
}

class CopyQuery extends Query {
  readonly #parts: Iterable<string>;
  /** Why the lines could not be made. */
  #failure: Error | undefined;

  constructor(text: string, parts: Iterable<string>, answered: Answered) {
    super(text, (error, result) => answered(error && (this.#failure ?? error), result));
    this.#parts = parts;
  }

  /** pg calls it when the server is ready for the lines; for any other statement it refuses. */
  handleCopyInResponse(connection: CopyConnection): void {
    try {
      for (const part of this.#parts) connection.sendCopyFromChunk(Buffer.from(part));
      connection.endCopyFrom();
    } catch (error) {
      this.#failure = asError(error);
      connection.sendCopyFail("The lines could not be made.");
    }
  }
}
