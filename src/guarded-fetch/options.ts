// The limits of a guarded fetch, checked once. Every one of them has a default that suits fetching pages of strangers.
import { OptionInvalid } from "../errors.ts";
import { defined } from "../shared/defined.ts";
import { type Duration, durationMs } from "../shared/duration.ts";
import { refuseUnknown } from "../shared/refuse-unknown.ts";
import { type Network, parseNetwork } from "./address.ts";

/** What `makeGuardedFetch` takes; docs/guarded-fetch.md has the defaults. */
export interface GuardedFetchOptions {
  /** For all of it: look-ups, redirects, and the body until its last byte. */
  timeout?: Duration;
  /** To look up a name and connect, for each redirect anew. */
  connectTimeout?: Duration;
  /** From the request until the answer's headers. */
  headersTimeout?: Duration;
  /** The longest silence inside a body. */
  idleTimeout?: Duration;
  maxHeaderBytes?: number;
  /** As it comes, and decompressed. */
  maxBodyBytes?: number;
  /** How many times larger than what came the decompressed body may be, beyond its first MiB. */
  maxRatio?: number;
  /** 0: a redirect is the answer. */
  maxRedirects?: number;
  ports?: readonly number[] | "any";
  /** Addresses and networks that may be called although they are not public: ["10.1.0.0/16"]. */
  allow?: readonly string[];
  userAgent?: string;
}

export const GUARDED_FETCH_DEFAULTS = {
  timeout: "60s",
  connectTimeout: "5s",
  headersTimeout: "10s",
  idleTimeout: "10s",
  maxHeaderBytes: 16_384,
  maxBodyBytes: 10_485_760,
  maxRatio: 100,
  maxRedirects: 5,
  ports: [80, 443],
  allow: [],
  userAgent: "holdfast",
} as const satisfies Required<GuardedFetchOptions>;

export interface Limits {
  timeoutMs: number;
  connectTimeoutMs: number;
  headersTimeoutMs: number;
  idleTimeoutMs: number;
  maxHeaderBytes: number;
  maxBodyBytes: number;
  maxRatio: number;
  maxRedirects: number;
  ports: ReadonlySet<number> | "any";
  allow: readonly Network[];
  userAgent: string;
}

const WHERE = "makeGuardedFetch()";

export function readOptions(given: GuardedFetchOptions): Limits {
  refuseUnknown(WHERE, given, Object.keys(GUARDED_FETCH_DEFAULTS));
  const options: Required<GuardedFetchOptions> = { ...GUARDED_FETCH_DEFAULTS, ...defined(given) };
  const ms = (name: "timeout" | "connectTimeout" | "headersTimeout" | "idleTimeout"): number => {
    const value = durationMs(`${WHERE}.${name}`, options[name]);
    if (value > 0) return value;
    throw new OptionInvalid(`${WHERE}.${name} is ${options[name]}.`, "Give it some time, or leave it out.");
  };
  const count = (name: "maxHeaderBytes" | "maxBodyBytes" | "maxRatio" | "maxRedirects", least: number): number => {
    const value = options[name];
    if (Number.isSafeInteger(value) && value >= least) return value;
    throw new OptionInvalid(`${WHERE}.${name} is ${String(value)}.`, `Give a whole number from ${least} on.`);
  };
  return {
    timeoutMs: ms("timeout"),
    connectTimeoutMs: ms("connectTimeout"),
    headersTimeoutMs: ms("headersTimeout"),
    idleTimeoutMs: ms("idleTimeout"),
    maxHeaderBytes: count("maxHeaderBytes", 1_024),
    maxBodyBytes: count("maxBodyBytes", 0),
    maxRatio: count("maxRatio", 1),
    maxRedirects: count("maxRedirects", 0),
    ports: readPorts(options.ports),
    allow: options.allow.map((text) => parseNetwork(`${WHERE}.allow`, text)),
    userAgent: options.userAgent,
  };
}

function readPorts(ports: readonly number[] | "any"): ReadonlySet<number> | "any" {
  if (ports === "any") return ports;
  const isPort = (port: unknown): boolean => Number.isInteger(port) && Number(port) > 0 && Number(port) < 65_536;
  if (Array.isArray(ports) && ports.every(isPort)) return new Set(ports);
  throw new OptionInvalid(`${WHERE}.ports is ${JSON.stringify(ports)}.`, 'Give a list, [80, 443], or "any".');
}
