// Every option of open() and work(), resolved once, checked once, frozen. Nothing downstream has a default of its own.
import { OptionInvalid } from "./errors.ts";
import { type InboxOptions, type ResolvedInboxOptions, resolveInboxOptions } from "./options/inbox.ts";
import { defined } from "./shared/defined.ts";
import { durationMs, retentionMs, type Duration } from "./shared/duration.ts";
import { refuseUnknown } from "./shared/refuse-unknown.ts";

/** What `open()` takes; docs/options.md has the defaults. */
export interface OpenOptions {
  /**
   * `postgres://…` for a server. Nothing: embedded, in `data`. `"memory:"`: embedded, gone at close, for tests.
   * `"embedded:"`, or `"embedded:./folder"`: the embedded tier by name.
   */
  database?: string | undefined;
  /** The embedded tier's folder. */
  data?: string;
  schema?: string;
  /** Bring the schema up to date at open. */
  migrate?: boolean;
  /** Connections in the pool (server tier). */
  poolSize?: number;
  /** How long one call to the database may take before it fails. */
  callTimeout?: Duration;
  /** How long finished jobs stay readable, of kinds that do not say it themselves. */
  keepDone?: Duration | "forever";
  /** How long cancelled and discarded jobs stay readable. */
  keepEnded?: Duration | "forever";
  /** The same for single queues; and how long their dead jobs stay, which is for ever unless said here. */
  queues?: Readonly<Record<string, QueueOptions>>;
  /** How often what is past its retention is purged. */
  purgeEvery?: Duration;
  /** The lease of kinds that do not say it themselves: how long after its last beat a worker is taken for dead. */
  lease?: Duration;
  /** Limits and retentions of the inbox. */
  inbox?: InboxOptions;
  /** Receives what Holdfast has to say; the default says nothing. */
  log?: Logger;
}

/** Retentions of one queue: `queues` of `open()`. */
export interface QueueOptions {
  keepDone?: Duration | "forever";
  keepEnded?: Duration | "forever";
  keepDead?: Duration | "forever";
}

/** Where Holdfast logs to: give your own logger's methods. */
export interface Logger {
  debug(message: string, fields?: object): void;
  info(message: string, fields?: object): void;
  warn(message: string, fields?: object): void;
  error(message: string, fields?: object): void;
}

export type Place = { tier: "server"; url: string } | { tier: "embedded"; folder: string } | { tier: "memory" };

export interface ResolvedOptions {
  place: Place;
  schema: string;
  migrate: boolean;
  poolSize: number;
  callTimeoutMs: number;
  keepDoneMs: number | null;
  keepEndedMs: number | null;
  queues: Readonly<Record<string, ResolvedQueueOptions>>;
  purgeEvery: Duration;
  leaseMs: number;
  inbox: ResolvedInboxOptions;
  log: Logger;
}

/** undefined: as for all queues. null: for ever. */
export interface ResolvedQueueOptions {
  keepDoneMs: number | null | undefined;
  keepEndedMs: number | null | undefined;
  keepDeadMs: number | null | undefined;
}

export const SILENT: Logger = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

export const OPEN_DEFAULTS = {
  data: "./.holdfast",
  schema: "holdfast",
  migrate: true,
  poolSize: 10,
  callTimeout: "10s",
  keepDone: "168h",
  keepEnded: "168h",
  queues: {},
  purgeEvery: "1m",
  lease: "30s",
  log: SILENT,
} as const satisfies OpenOptions;

const OPEN_KNOWN = ["database", "inbox", ...Object.keys(OPEN_DEFAULTS)];
const QUEUE_KNOWN = ["keepDone", "keepEnded", "keepDead"];

export function resolveOpenOptions(given: OpenOptions): ResolvedOptions {
  refuseUnknown("open()", given, OPEN_KNOWN);
  const options = { ...OPEN_DEFAULTS, ...defined(given) };
  return Object.freeze({
    place: resolvePlace(options.database, options.data),
    schema: options.schema,
    migrate: flag("open().migrate", options.migrate),
    poolSize: count("open().poolSize", options.poolSize, 2, 1_000),
    callTimeoutMs: atLeast("open().callTimeout", durationMs("open().callTimeout", options.callTimeout), 100),
    keepDoneMs: retentionMs("open().keepDone", options.keepDone),
    keepEndedMs: retentionMs("open().keepEnded", options.keepEnded),
    queues: resolveQueues(options.queues),
    purgeEvery: interval("open().purgeEvery", options.purgeEvery),
    leaseMs: atLeast("open().lease", durationMs("open().lease", options.lease), 100),
    inbox: resolveInboxOptions(options.inbox),
    log: options.log,
  });
}

function resolveQueues(given: unknown): Record<string, ResolvedQueueOptions> {
  if (typeof given !== "object" || given === null || Array.isArray(given)) {
    throw new OptionInvalid("open().queues is not an object.", 'Give { mail: { keepDone: "24h" } }.');
  }
  const resolved = Object.entries(given as Record<string, QueueOptions>).map(([queue, options]) => {
    const where = `open().queues[${JSON.stringify(queue)}]`;
    if (typeof options !== "object" || options === null) {
      throw new OptionInvalid(`${where} is ${String(options)}.`, 'Give { keepDone: "24h" }.');
    }
    refuseUnknown(where, options, QUEUE_KNOWN);
    const keep = (name: keyof QueueOptions): number | null | undefined =>
      options[name] === undefined ? undefined : retentionMs(`${where}.${name}`, options[name]);
    return [
      queue,
      { keepDoneMs: keep("keepDone"), keepEndedMs: keep("keepEnded"), keepDeadMs: keep("keepDead") },
    ] as const;
  });
  return Object.fromEntries(resolved);
}

function interval(name: string, value: Duration): Duration {
  atLeast(name, durationMs(name, value), 1_000);
  return value;
}

function resolvePlace(database: unknown, data: string): Place {
  if (database === undefined || database === "" || database === "embedded:") return { tier: "embedded", folder: data };
  if (typeof database === "string") {
    if (database === "memory:") return { tier: "memory" };
    if (database.startsWith("embedded:")) return { tier: "embedded", folder: database.slice("embedded:".length) };
    if (/^postgres(ql)?:\/\//.test(database)) return { tier: "server", url: database };
  }
  throw new OptionInvalid(
    "open().database is not a database URL.",
    'Give postgres://user:password@host:5432/name, "memory:", "embedded:./folder", or nothing for ./.holdfast.',
  );
}

/** What `hf.work()` takes; docs/options.md has the defaults. */
export interface WorkOptions {
  /** How many jobs run at once in this worker. */
  concurrency?: number;
  /** The longest pause between two looks for work when nothing wakes the worker. */
  poll?: Duration;
  /** How long stop() waits for running jobs before it aborts their signals. */
  grace?: Duration;
  /** How long stop() waits after that before it gives the jobs back. */
  abortGrace?: Duration;
  /** How people recognise this worker. */
  name?: string;
  /** A module whose default export the heartbeat thread calls when the main thread hangs past a job's timeout. */
  hungHook?: URL | string;
}

export interface ResolvedWorkOptions {
  concurrency: number;
  pollMs: number;
  graceMs: number;
  abortMs: number;
  name: string;
  hungHook: string | null;
}

export const WORK_DEFAULTS = {
  concurrency: 10,
  poll: "1s",
  grace: "25s",
  abortGrace: "3s",
  name: "worker",
} as const satisfies WorkOptions;

export function resolveWorkOptions(given: WorkOptions): ResolvedWorkOptions {
  refuseUnknown("work()", given, [...Object.keys(WORK_DEFAULTS), "hungHook"]);
  const options = { ...WORK_DEFAULTS, ...defined(given) };
  return Object.freeze({
    concurrency: count("work().concurrency", options.concurrency, 1, 10_000),
    pollMs: atLeast("work().poll", durationMs("work().poll", options.poll), 10),
    graceMs: durationMs("work().grace", options.grace),
    abortMs: durationMs("work().abortGrace", options.abortGrace),
    name: options.name,
    hungHook: options.hungHook === undefined ? null : String(options.hungHook),
  });
}

function count(name: string, value: unknown, least: number, most: number): number {
  if (!Number.isInteger(value) || (value as number) < least || (value as number) > most) {
    throw new OptionInvalid(`${name} is ${String(value)}.`, `Give a whole number from ${least} to ${most}.`);
  }
  return value as number;
}

function flag(name: string, value: unknown): boolean {
  if (typeof value !== "boolean") throw new OptionInvalid(`${name} is ${String(value)}.`, "Give true or false.");
  return value;
}

function atLeast(name: string, ms: number, least: number): number {
  if (ms < least) throw new OptionInvalid(`${name} is ${ms} ms.`, `Give at least "${least}ms".`);
  return ms;
}
