// What a server process runs with, each value with its source. A flag wins over the environment, the environment over
// the configuration file, the file over the default.
import type { App } from "../apps/define-app.ts";
import type { AnyJobKind } from "../job/define-job.ts";
import { OPEN_DEFAULTS, type QueueOptions, WORK_DEFAULTS } from "../options.ts";
import type { InboxOptions } from "../options/inbox.ts";
import { durationMs, type Duration } from "../shared/duration.ts";
import type { LoadedConfig } from "./config-file.ts";
import { type Env, type Found, toDatabase, toEnvironment, toHost, toPort, toSchema } from "./env.ts";
import { EXIT } from "./exit-codes.ts";
import { Problem } from "./problem.ts";
import { SAMPLE_JOBS } from "./sample-jobs.ts";

export interface ServerFlags {
  embedded?: boolean;
  data?: string;
  schema?: string;
  host?: string;
  port?: string;
  concurrency?: string;
  grace?: string;
  healthPort?: string;
}

export interface Settings {
  /** undefined: the embedded database in `data`. */
  database: Found<string | undefined>;
  data: Found<string>;
  schema: Found<string>;
  /** False: the schema is brought up to date by `holdfast migrate` only. */
  migrate: Found<boolean>;
  poolSize: Found<number>;
  callTimeout: Found<Duration>;
  host: Found<string>;
  port: Found<number>;
  token: Found<string | undefined>;
  allowedHosts: Found<readonly string[]>;
  /** What people call this installation; undefined: nobody said. */
  environment: Found<string | undefined>;
  /** Where a worker answers health checks; undefined: nowhere. */
  healthPort: Found<number | undefined>;
  concurrency: Found<number>;
  /** How long a stop waits for running jobs. */
  grace: Found<Duration>;
  keepDone: Found<Duration | "forever">;
  keepEnded: Found<Duration | "forever">;
  queues: Found<Readonly<Record<string, QueueOptions>>>;
  purgeEvery: Found<Duration>;
  lease: Found<Duration>;
  jobs: Found<readonly AnyJobKind[]>;
  apps: Found<readonly App[]>;
  inbox: Found<InboxOptions>;
}

export function resolveSettings(flags: ServerFlags, env: Env, file: LoadedConfig | null): Settings {
  const config = file?.config ?? {};
  const inFile = <T>(value: T | undefined): Found<T> | undefined =>
    value === undefined || file === null ? undefined : { value, source: file.name };
  const checked = <T>(name: string, value: string | number | undefined, convert: Convert<T>): Found<T> | undefined =>
    value === undefined || file === null ? undefined : inFile(convert(`${name} in ${file.name}`, String(value)));

  return {
    database: flags.embedded
      ? { value: "embedded:", source: "--embedded" }
      : (env.database ?? checked("database", config.database, toDatabase) ?? byDefault(undefined)),
    data: flag("data", flags.data, asIs) ?? env.data ?? inFile(config.data) ?? byDefault(OPEN_DEFAULTS.data),
    schema:
      flag("schema", flags.schema, toSchema) ??
      env.schema ??
      checked("schema", config.schema, toSchema) ??
      byDefault(OPEN_DEFAULTS.schema),
    migrate: inFile(config.migrate) ?? byDefault(OPEN_DEFAULTS.migrate),
    poolSize: inFile(config.poolSize) ?? byDefault(OPEN_DEFAULTS.poolSize),
    callTimeout: inFile(config.callTimeout) ?? byDefault(OPEN_DEFAULTS.callTimeout),
    host:
      flag("host", flags.host, toHost) ?? env.host ?? checked("host", config.host, toHost) ?? byDefault("127.0.0.1"),
    port: flag("port", flags.port, toPort) ?? env.port ?? checked("port", config.port, toPort) ?? byDefault(7070),
    token: env.token ?? byDefault(undefined),
    allowedHosts: env.allowedHosts ?? inFile(config.allowedHosts) ?? byDefault([]),
    environment: env.environment ?? checked("environment", config.environment, toEnvironment) ?? byDefault(undefined),
    healthPort: flag("health-port", flags.healthPort, toPort) ?? env.healthPort ?? byDefault(undefined),
    concurrency:
      flag("concurrency", flags.concurrency, toCount) ??
      checked("concurrency", config.concurrency, toCount) ??
      byDefault(WORK_DEFAULTS.concurrency),
    grace: flag("grace", flags.grace, toDuration) ?? byDefault(WORK_DEFAULTS.grace),
    keepDone: env.keepDone ?? inFile(config.keepDone) ?? byDefault(OPEN_DEFAULTS.keepDone),
    keepEnded: inFile(config.keepEnded) ?? byDefault(OPEN_DEFAULTS.keepEnded),
    queues: inFile(config.queues) ?? byDefault(OPEN_DEFAULTS.queues),
    purgeEvery: env.purgeEvery ?? inFile(config.purgeEvery) ?? byDefault(OPEN_DEFAULTS.purgeEvery),
    lease: env.lease ?? inFile(config.lease) ?? byDefault(OPEN_DEFAULTS.lease),
    jobs: inFile(config.jobs) ?? (config.apps?.length ? byDefault([]) : { value: SAMPLE_JOBS, source: "samples" }),
    apps: inFile(config.apps) ?? byDefault([]),
    inbox: inFile(config.inbox) ?? byDefault({}),
  };
}

/** The embedded database is for one process and one machine's memory: in production it must be meant. */
export function refuseAccidentalEmbedded(settings: Settings, isProduction: boolean): void {
  if (!isProduction || settings.database.value !== undefined) return;
  throw new Problem(
    "NODE_ENV is production, and no database is configured.",
    "Set DATABASE_URL to a PostgreSQL server. If you mean the embedded database, which does not survive the death of the machine, say so: --embedded.",
    EXIT.usage,
  );
}

/** Where the embedded database is; undefined for a server. */
export function embeddedFolder({ database, data }: Settings): string | undefined {
  if (database.value === undefined || database.value === "embedded:") return data.value;
  return database.value.startsWith("embedded:") ? database.value.slice("embedded:".length) : undefined;
}

/** What open() is given. */
export function openOptions(settings: Settings) {
  return {
    database: settings.database.value,
    data: settings.data.value,
    schema: settings.schema.value,
    migrate: settings.migrate.value,
    poolSize: settings.poolSize.value,
    callTimeout: settings.callTimeout.value,
    keepDone: settings.keepDone.value,
    keepEnded: settings.keepEnded.value,
    queues: settings.queues.value,
    purgeEvery: settings.purgeEvery.value,
    lease: settings.lease.value,
    inbox: settings.inbox.value,
  };
}

type Convert<T> = (name: string, value: string) => T;

const byDefault = <T>(value: T): Found<T> => ({ value, source: "default" });

const flag = <T>(name: string, value: string | undefined, convert: Convert<T>): Found<T> | undefined =>
  value === undefined ? undefined : { value: convert(`--${name}`, value), source: `--${name}` };

const asIs = (_: string, value: string): string => value;

function toCount(name: string, value: string): number {
  const count = Number(value);
  if (/^\d+$/.test(value) && count >= 1 && count <= 10_000) return count;
  throw new Problem(`${name} is ${JSON.stringify(value)}.`, "Give a whole number from 1 to 10000.", EXIT.usage);
}

function toDuration(name: string, value: string): Duration {
  checkDuration(name, value);
  return value;
}

function checkDuration(name: string, value: string): asserts value is Duration {
  durationMs(name, value);
}
