// Every error a caller can act on, with its code. docs/errors.md lists the same codes; a test in test/house keeps
// the two equal in both directions.
//
// What a handler throws to end its attempt (Fatal, Gone, RetryAfter, Snooze) lives in job/outcome.ts: those are
// instructions, not failures of Holdfast.

/** What every error of Holdfast is: `code` for programs, `message` and `hint` for people. */
export abstract class HoldfastError extends Error {
  abstract readonly code: string;
  /** What to do next, in one sentence. */
  readonly hint: string;
  constructor(message: string, hint: string, options?: ErrorOptions) {
    super(message, options);
    this.hint = hint;
    this.name = new.target.name;
  }
}

/** An option, a definition or an argument has a value that cannot work. */
export class OptionInvalid extends HoldfastError {
  readonly code = "HOLDFAST_OPTION_INVALID";
}

/** A payload (or a result) that does not fit the kind's schema, or that JSON or Postgres cannot keep faithfully. */
export class PayloadInvalid extends HoldfastError {
  readonly code = "HOLDFAST_PAYLOAD_INVALID";
}

/** A job kind that nobody has defined here. */
export class KindUnknown extends HoldfastError {
  readonly code = "HOLDFAST_KIND_UNKNOWN";
}

/** No job (or other thing) has this id. */
export class NotFound extends HoldfastError {
  readonly code = "HOLDFAST_NOT_FOUND";
}

/** The job is in a state that does not allow what was asked. */
export class StateConflict extends HoldfastError {
  readonly code = "HOLDFAST_STATE_CONFLICT";
}

/** The run lost its lease: somebody else may be running the job now, and nothing this run writes is accepted. */
export class LeaseLost extends HoldfastError {
  readonly code = "HOLDFAST_LEASE_LOST";
}

/** The database did not answer in time, or cannot be reached. The call may be made again. */
export class DatabaseUnavailable extends HoldfastError {
  readonly code = "HOLDFAST_DATABASE_UNAVAILABLE";
}

/** A call to the embedded database from inside a transaction on it, which would wait for itself. */
export class TransactionNested extends HoldfastError {
  readonly code = "HOLDFAST_TRANSACTION_NESTED";
}

/** Another process has the embedded folder open. */
export class FolderLocked extends HoldfastError {
  readonly code = "HOLDFAST_FOLDER_LOCKED";
}

/** The embedded folder holds something this version cannot open. */
export class FolderUnusable extends HoldfastError {
  readonly code = "HOLDFAST_FOLDER_UNUSABLE";
}

/** The schema in the database was made by a newer, incompatible version. */
export class SchemaTooNew extends HoldfastError {
  readonly code = "HOLDFAST_SCHEMA_TOO_NEW";
}

/** The schema in the database is missing or older than this version needs, and migrating was not asked for. */
export class SchemaOutdated extends HoldfastError {
  readonly code = "HOLDFAST_SCHEMA_OUTDATED";
}

/** Content that is larger than the inbox takes. */
export class TooLarge extends HoldfastError {
  readonly code = "HOLDFAST_TOO_LARGE";
}

/** The recipient's inbox has no room for it. */
export class QuotaExceeded extends HoldfastError {
  readonly code = "HOLDFAST_QUOTA_EXCEEDED";
}

/** Bytes that are not those whose hash is known. */
export class ContentCorrupt extends HoldfastError {
  readonly code = "HOLDFAST_CONTENT_CORRUPT";
}

/** A wait ended before what it waited for happened. */
export class WaitTimeout extends HoldfastError {
  readonly code = "HOLDFAST_WAIT_TIMEOUT";
}

/** The client, worker or database was closed while the call was made. */
export class Closed extends HoldfastError {
  readonly code = "HOLDFAST_CLOSED";
}

/** A URL that is not called, or an answer that is not taken: trying again changes nothing. */
export class FetchRefused extends HoldfastError {
  readonly code = "HOLDFAST_FETCH_REFUSED";
  readonly reason: "url" | "address" | "redirect" | "size" | "encoding";
  constructor(reason: FetchRefused["reason"], message: string, hint: string, options?: ErrorOptions) {
    super(message, hint, options);
    this.reason = reason;
  }
}

/** The other side was not reached, was too slow, or broke off. */
export class FetchFailed extends HoldfastError {
  readonly code = "HOLDFAST_FETCH_FAILED";
  readonly reason: "timeout" | "name" | "connection" | "answer";
  constructor(reason: FetchFailed["reason"], message: string, hint: string, options?: ErrorOptions) {
    super(message, hint, options);
    this.reason = reason;
  }
}
