// What an error of the database means for whoever made the call, told by its code and never by its text when it has
// a code: SQLSTATEs for what the server said, Node's codes for what the socket said.
//
// - connection trouble: the server cannot be reached, or this connection is over. A statement that had been sent may
//   or may not have taken effect;
// - takes no writes: the server is there, and refuses everybody's: it is read-only (a primary that was demoted, a provider that
//   does this to a full disk), or its disk is full. For whoever has something to write it is away;
// - retryable: the server undid the statement (or its transaction) because of somebody else. Sent again, it may work;
// - lock timeout: one kind of retryable, where somebody else still holds the lock.
import { DatabaseUnavailable } from "../errors.ts";

export const SERIALIZATION_FAILURE = "40001";
const DEADLOCK_DETECTED = "40P01";
const LOCK_NOT_AVAILABLE = "55P03";
export const IN_FAILED_TRANSACTION = "25P02";
export const READ_ONLY_TRANSACTION = "25006";
export const DISK_FULL = "53100";
const QUERY_CANCELED = "57014"; // by somebody, or by a statement_timeout of the role

const RETRYABLE = new Set([SERIALIZATION_FAILURE, DEADLOCK_DETECTED, LOCK_NOT_AVAILABLE]);

/** The server ended this session, or takes no new one. Class 08 (connection exceptions) is added below. */
const SESSION_OVER = new Set([
  "25P03", // idle_in_transaction_session_timeout
  "25P04", // transaction_timeout
  "53300", // too_many_connections
  "57P01", // admin_shutdown, pg_terminate_backend
  "57P02", // crash_shutdown
  "57P03", // cannot_connect_now: starting up, shutting down
  "57P05", // idle_session_timeout
]);

const SOCKET_BROKEN = new Set([
  "ECONNREFUSED",
  "ECONNRESET",
  "ECONNABORTED",
  "EPIPE",
  "ETIMEDOUT",
  "EHOSTUNREACH",
  "EHOSTDOWN",
  "ENETUNREACH",
  "ENETDOWN",
  "ENETRESET",
  "ENOTFOUND",
  "EAI_AGAIN",
  "ERR_SOCKET_CLOSED",
  "ERR_SOCKET_CONNECTION_TIMEOUT",
  "ERR_STREAM_DESTROYED",
  "ERR_STREAM_WRITE_AFTER_END",
]);

/** What `pg` and `pg-pool` say without any code. */
const SAID_WITHOUT_CODE = new Set([
  "Connection terminated",
  "Connection terminated unexpectedly",
  "Connection terminated due to connection timeout",
  "Client has encountered a connection error and is not queryable",
  "Client was closed and is not queryable",
  "Client network socket disconnected before secure TLS connection was established",
  "There was an error establishing an SSL connection",
  "timeout expired",
  "timeout exceeded when trying to connect",
]);

export function isConnectionTrouble(error: unknown): boolean {
  if (error instanceof DatabaseUnavailable) return true;
  const code = codeOf(error);
  if (code === undefined) return error instanceof Error && SAID_WITHOUT_CODE.has(error.message);
  // A statement with the wrong number of values is 08P01 too, but an ERROR of PostgreSQL's own; poolers that hang up
  // say FATAL, and name no routine of PostgreSQL.
  if (code === "08P01") return severityOf(error) === "FATAL" || !hasRoutine(error);
  if (code === "ENOENT" || code === "EACCES") return isFromConnect(error);
  return (code.length === 5 && code.startsWith("08")) || SESSION_OVER.has(code) || SOCKET_BROKEN.has(code);
}

const poolBusy = new WeakSet<Error>();

/** Says of an error that this process had no connection free: whoever made the call may wait, and the server is not to blame. */
export function asPoolBusy<E extends Error>(error: E): E {
  poolBusy.add(error);
  return error;
}

export function isPoolBusy(error: unknown): boolean {
  return error instanceof Error && poolBusy.has(error);
}

export function takesNoWrites(error: unknown): boolean {
  const code = codeOf(error);
  return code === READ_ONLY_TRANSACTION || code === DISK_FULL;
}

/** Time may help: the same statement may succeed later. Anything else is refused for what it says. */
export function isPassing(error: unknown): boolean {
  return isConnectionTrouble(error) || takesNoWrites(error) || isRetryable(error) || codeOf(error) === QUERY_CANCELED;
}

export function isRetryable(error: unknown): boolean {
  const code = codeOf(error);
  return code !== undefined && RETRYABLE.has(code);
}

export function isLockTimeout(error: unknown): boolean {
  return codeOf(error) === LOCK_NOT_AVAILABLE;
}

/** The connection that said this is not used again, whatever the caller makes of the error. */
export function endsConnection(error: unknown): boolean {
  // Read only: after a failover we may still be talking to the server that used to be the primary.
  return severityOf(error) === "FATAL" || codeOf(error) === READ_ONLY_TRANSACTION || isConnectionTrouble(error);
}

/** A SQLSTATE, or a code of Node's; undefined if there is none. */
export function codeOf(error: unknown): string | undefined {
  return textOf(error, "code");
}

/** Its message; an AggregateError of several failed connects has an empty one. */
export function reasonOf(error: Error): string {
  return error.message || codeOf(error) || error.name;
}

export function asError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown));
}

function severityOf(error: unknown): string | undefined {
  return textOf(error, "severity");
}

function hasRoutine(error: unknown): boolean {
  return textOf(error, "routine") !== undefined;
}

/** The unix socket is not there, or is not ours to open. */
function isFromConnect(error: unknown): boolean {
  return textOf(error, "syscall") === "connect";
}

function textOf(error: unknown, name: string): string | undefined {
  if (typeof error !== "object" || error === null) return undefined;
  const value: unknown = Reflect.get(error, name);
  return typeof value === "string" ? value : undefined;
}
