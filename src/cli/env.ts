// The environment, read once and checked once. A message names the variable, and never repeats a value that may hold
// a password. An empty variable is one that is not set.
import { HoldfastError } from "../errors.ts";
import { type Duration, durationMs } from "../shared/duration.ts";
import { quoteSchema } from "../shared/quote-schema.ts";
import { EXIT } from "./exit-codes.ts";
import { Problem } from "./problem.ts";

export interface Found<T> {
  value: T;
  /** Where it came from, as people should read it: "HOLDFAST_PORT". */
  source: string;
}

export interface Env {
  database: Found<string> | undefined;
  data: Found<string> | undefined;
  schema: Found<string> | undefined;
  host: Found<string> | undefined;
  port: Found<number> | undefined;
  token: Found<string> | undefined;
  allowedHosts: Found<string[]> | undefined;
  /** What people call this installation. */
  environment: Found<string> | undefined;
  /** Where a worker answers health checks. */
  healthPort: Found<number> | undefined;
  /** The server that client commands talk to. */
  url: Found<string> | undefined;
  /** How long finished jobs stay. */
  keepDone: Found<Duration | "forever"> | undefined;
  /** After how long without a sign a worker is taken for dead. */
  lease: Found<Duration> | undefined;
  purgeEvery: Found<Duration> | undefined;
  isProduction: boolean;
}

export function readEnv(env: Readonly<Record<string, string | undefined>>): Env {
  const read = <T>(name: string, convert: (name: string, value: string) => T): Found<T> | undefined => {
    const value = env[name]?.trim();
    return value ? { value: convert(name, value), source: name } : undefined;
  };
  return {
    database: read("HOLDFAST_DATABASE_URL", toDatabase) ?? read("DATABASE_URL", toDatabase),
    data: read("HOLDFAST_DATA", (_, value) => value),
    schema: read("HOLDFAST_SCHEMA", toSchema),
    host: read("HOLDFAST_HOST", toHost),
    port: read("HOLDFAST_PORT", toPort),
    token: read("HOLDFAST_TOKEN", toToken),
    allowedHosts: read("HOLDFAST_ALLOWED_HOSTS", (_, value) => value.split(",").map((name) => name.trim())),
    environment: read("HOLDFAST_ENVIRONMENT", toEnvironment),
    healthPort: read("HOLDFAST_HEALTH_PORT", toPort),
    url: read("HOLDFAST_URL", toUrl),
    keepDone: read("QUEUE_DONE_RETENTION", (name, value) => (value === "forever" ? value : toSpan(name, value, 0))),
    lease: read("QUEUE_STUCK_TIMEOUT", (name, value) => toSpan(name, value, 1_000)),
    purgeEvery: read("QUEUE_JANITOR_INTERVAL", (name, value) => toSpan(name, value, 1_000)),
    isProduction: env["NODE_ENV"] === "production",
  };
}

export function toDatabase(name: string, value: string): string {
  if (/^(postgres(ql)?:\/\/|embedded:|memory:$)/.test(value)) return value;
  // Not shown: it may be a password that was pasted into the wrong variable.
  throw wrong(
    `${name} is not a database URL.`,
    'Write postgres://user:password@host:5432/name, or "embedded:" to ask for the embedded database by name.',
  );
}

export function toSchema(name: string, value: string): string {
  try {
    quoteSchema(value);
    return value;
  } catch (error) {
    const hint = error instanceof HoldfastError ? error.hint : "";
    throw wrong(`${name} is ${JSON.stringify(value)}, which cannot name a schema.`, hint);
  }
}

export function toHost(name: string, value: string): string {
  if (/^[\w.:-]+$|^\[[\da-fA-F:.]+\]$/.test(value) && !/^[\w.-]+:\d+$/.test(value)) return value.replace(/[[\]]/g, "");
  throw wrong(
    `${name} is ${JSON.stringify(value)}, which is not a host.`,
    "Write a name or an address alone, such as 127.0.0.1; the port has its own setting, HOLDFAST_PORT.",
  );
}

export function toPort(name: string, value: string): number {
  const port = Number(value);
  if (/^\d{1,5}$/.test(value) && port <= 65_535) return port;
  throw wrong(
    `${name} is ${JSON.stringify(value)}.`,
    "Give a port from 1 to 65535, or 0 to let the system choose one.",
  );
}

/** It stands in the header of every page. */
export function toEnvironment(name: string, value: string): string {
  if (value.length <= 40 && /^[\p{L}\p{N}][\p{L}\p{N} ._-]*$/u.test(value)) return value;
  throw wrong(`${name} is ${JSON.stringify(value)}.`, "Give a short name, such as production or staging.");
}

function toToken(name: string, value: string): string {
  if (/^[\x21-\x7e]+$/.test(value)) return value;
  throw wrong(
    `${name} holds a space or a character that is not ASCII, which a header cannot carry.`,
    "Use letters and digits; openssl rand -hex 32 makes a good one.",
  );
}

export function toUrl(name: string, value: string): string {
  if (/^https?:\/\//.test(value) && URL.canParse(value)) return value.replace(/\/+$/, "");
  throw wrong(`${name} is ${JSON.stringify(value)}.`, "Write the address of a server, such as http://127.0.0.1:7070.");
}

/** One number and unit, or several: 168h, 1h30m. Not 0 or 15: nobody knows of what. */
function toSpan(name: string, value: string, leastMs: number): Duration {
  const parts = /^(\d+(\.\d+)?(ms|s|m|h|d))+$/.test(value) ? value.match(/\d+(\.\d+)?(ms|s|m|h|d)/g) : null;
  if (!parts) {
    const hint = value.startsWith("-")
      ? "It cannot be negative. Leave it out for the default."
      : "Write a number and a unit, such as 90s, 30m or 168h. 0s means at once; leave it out for the default.";
    throw wrong(`${name} is ${JSON.stringify(value)}, which is not a duration.`, hint);
  }
  const ms = parts.reduce((sum, part) => sum + durationMs(name, part), 0);
  if (ms < leastMs) throw wrong(`${name} is ${JSON.stringify(value)}.`, `Give at least ${leastMs / 1_000}s.`);
  return parts.length === 1 ? (value as Duration) : `${ms}ms`;
}

function wrong(message: string, hint: string): Problem {
  return new Problem(message, hint, EXIT.usage);
}
