// From what the caller gave to what `pg` needs. Everything that can be seen to be wrong is refused here, before any
// connection is made, with an OptionInvalid that never contains the password (nor any part of a URL that might be it).
import { Client, type ClientConfig } from "pg";
import { OptionInvalid } from "../errors.ts";
import { type Hosts, makeHosts, splitHosts } from "./postgres-hosts.ts";
import { types } from "./postgres-types.ts";

export interface PostgresOptions {
  /** postgres://user:password@host:5432/database, or several hosts: see postgres-hosts.ts. */
  url?: string;
  /** Instead of `url`: host, port, user, password (or a function that fetches one), database, ssl, … as `pg` takes them. */
  connection?: ClientConfig;
  /** Connections at most, listeners not counted. Default 10. */
  poolSize?: number;
  /** How long a statement may take, the wait for a connection included, when the call does not say. Default 10 s. */
  statementTimeoutMs?: number;
  /** How long to connect, and to wait for a free connection. Default 5 s. */
  connectTimeoutMs?: number;
  /** After this long without a statement in an open transaction the server ends it. 0: never. Default 60 s. */
  idleInTransactionTimeoutMs?: number;
  /** How long close() waits for calls that are under way. Default 5 s. */
  closeTimeoutMs?: number;
  /** What pg_stat_activity shows, unless the URL has its own application_name. Default "holdfast". */
  applicationName?: string;
  /** How often a listener checks that notifications arrive. Default 30 s. */
  canaryIntervalMs?: number;
  /** How long its notification to itself may take. Default 5 s. */
  canaryTimeoutMs?: number;
  /** Told of trouble that no call can report: a connection that died idle, a listener that lost its own. For logs. */
  onTrouble?: (error: Error) => void;
}

export interface PostgresSettings {
  /** One for each host. */
  clients: readonly ClientConfig[];
  /** "host:port/database" of each, for messages. */
  addresses: readonly string[];
  hosts: Hosts;
  poolSize: number;
  statementTimeoutMs: number;
  connectTimeoutMs: number;
  idleInTransactionTimeoutMs: number;
  closeTimeoutMs: number;
  canaryIntervalMs: number;
  canaryTimeoutMs: number;
  onTrouble: (error: Error) => void;
}

/** setTimeout turns anything longer into 1 ms. */
export const LONGEST_TIMEOUT_MS = 2_147_483_647;

const URL_HINT =
  "Write postgres://user:password@host:5432/database. In the user name and the password, characters like " +
  '@ : / ? # % must be percent-encoded ("#" is "%23").';

export function readOptions(options: PostgresOptions): PostgresSettings {
  const connectTimeoutMs = milliseconds("connectTimeoutMs", options.connectTimeoutMs, 5_000);
  const clients = given(options).map((config): ClientConfig => ({
    ...config,
    application_name: options.applicationName ?? options.connection?.application_name ?? "holdfast",
    connectionTimeoutMillis: connectTimeoutMs,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    types,
    pipeline: false,
  }));
  return {
    clients,
    addresses: clients.map(addressOf),
    hosts: makeHosts(clients.length),
    poolSize: wholeNumber("poolSize", options.poolSize ?? 10, 1, 10_000),
    statementTimeoutMs: milliseconds("statementTimeoutMs", options.statementTimeoutMs, 10_000),
    connectTimeoutMs,
    idleInTransactionTimeoutMs: wholeNumber(
      "idleInTransactionTimeoutMs",
      options.idleInTransactionTimeoutMs ?? 60_000,
      0,
      LONGEST_TIMEOUT_MS,
    ),
    closeTimeoutMs: milliseconds("closeTimeoutMs", options.closeTimeoutMs, 5_000),
    canaryIntervalMs: milliseconds("canaryIntervalMs", options.canaryIntervalMs, 30_000),
    canaryTimeoutMs: milliseconds("canaryTimeoutMs", options.canaryTimeoutMs, 5_000),
    onTrouble: guarded(options.onTrouble),
  };
}

function given({ url, connection }: PostgresOptions): ClientConfig[] {
  if (url !== undefined && connection !== undefined) {
    throw new OptionInvalid("Both url and connection are given.", "Give one of them.");
  }
  if (connection !== undefined) {
    checkConnection(connection);
    if (connection.connectionString !== undefined) checkUrl(connection.connectionString);
    return [connection];
  }
  checkUrl(url);
  return splitHosts(url).map((connectionString) => ({ connectionString }));
}

function checkUrl(url: unknown): asserts url is string {
  if (typeof url !== "string" || url.trim() === "") {
    throw new OptionInvalid("The database URL is missing.", URL_HINT);
  }
  const parts = /^(?:postgres|postgresql):\/\/([^/?#]*)(.*)$/is.exec(url);
  if (!parts) throw new OptionInvalid("The database URL does not begin with postgres://.", URL_HINT);
  const [, authority = "", rest = ""] = parts;
  // An unencoded / ? or # in the password ends the authority early: what is left looks like a host, and the rest of
  // the password would turn up in messages as the name of a database.
  const path = rest.startsWith("/") ? rest.replace(/\?.*$/s, "") : rest;
  if (rest.includes("#") || (!authority.includes("@") && path.includes("@"))) {
    throw new OptionInvalid("The database URL cannot be read: it looks as if its password is not encoded.", URL_HINT);
  }
}

function checkConnection(connection: ClientConfig): void {
  for (const name of ["host", "user", "database", "connectionString"] as const) {
    const value: unknown = connection[name];
    if (value === undefined || typeof value === "string") continue;
    throw new OptionInvalid(`connection.${name} is not a string.`, `Write connection.${name} as a string.`);
  }
  const { password, port } = connection as { password?: unknown; port?: unknown };
  if (!["undefined", "string", "function"].includes(typeof password)) {
    const hint = "Write the password as a string, or as a function that returns one.";
    throw new OptionInvalid("connection.password is neither a string nor a function.", hint);
  }
  if (port !== undefined) wholeNumber("connection.port", Number(port), 1, 65_535);
}

/** Also the proof that pg can read the configuration. */
function addressOf(client: ClientConfig): string {
  let probe: Client;
  try {
    probe = new Client(client);
  } catch (error) {
    // Only errors about files of certificates say something that helps and cannot contain the URL.
    const path: unknown = error instanceof Error && "path" in error ? error.path : undefined;
    if (typeof path === "string")
      throw new OptionInvalid(`${path} in the database URL cannot be read.`, "Check the path.");
    throw new OptionInvalid("The database URL cannot be read.", URL_HINT);
  }
  const { host, port, database } = probe;
  wholeNumber("The port in the database URL", port, 1, 65_535);
  return `${host.includes(":") ? `[${host}]` : host}:${port}/${database}`;
}

function milliseconds(name: string, value: number | undefined, fallback: number): number {
  return wholeNumber(name, value ?? fallback, 1, LONGEST_TIMEOUT_MS);
}

function wholeNumber(name: string, value: number, least: number, most: number): number {
  if (Number.isInteger(value) && value >= least && value <= most) return value;
  throw new OptionInvalid(`${name} is ${String(value)}.`, `Write a whole number from ${least} to ${most}.`);
}

/** A log that throws must not turn lost connections into a crash. */
function guarded(onTrouble: ((error: Error) => void) | undefined): (error: Error) => void {
  return (error) => {
    try {
      onTrouble?.(error);
    } catch {
      // There is nowhere left to say it.
    }
  };
}
