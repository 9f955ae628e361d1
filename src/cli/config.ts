// The shape of holdfast.config.ts. defineConfig() gives it types and changes nothing.
import type { App } from "../apps/define-app.ts";
import type { AnyJobKind } from "../job/define-job.ts";
import type { QueueOptions } from "../options.ts";
import type { InboxOptions } from "../options/inbox.ts";
import type { Duration } from "../shared/duration.ts";

/**
 * What `holdfast.config.ts` may say: kinds, apps, and settings for the commands. Flags and the environment win over
 * it.
 */
export interface HoldfastConfig {
  /** The apps that `holdfast dev` and `start` run: what defineApp() returned. */
  apps?: readonly App[];
  /** The kinds that `holdfast dev`, `start` and `worker` run. */
  jobs?: readonly AnyJobKind[];
  /** How many jobs run at once. */
  concurrency?: number;
  /** `postgres://…`; nothing for the embedded database. Secrets are better kept in DATABASE_URL. */
  database?: string | undefined;
  /** The embedded database's folder. */
  data?: string;
  schema?: string;
  /** Whether dev, start and worker bring the schema up to date; false: they refuse one that is not, and `holdfast migrate` does it. */
  migrate?: boolean;
  /** Connections in the pool of each process (server tier). */
  poolSize?: number;
  /** How long one call to the database may take before it fails. */
  callTimeout?: Duration;
  host?: string;
  port?: number;
  /** What people call this installation ("production"): it stands in the header of the dashboard. */
  environment?: string;
  /** Names, besides those of this machine, under which the server may be called. */
  allowedHosts?: readonly string[];
  /** Retentions, how often they are looked after, and the lease of kinds that have none of their own; as in open(). */
  keepDone?: Duration | "forever";
  keepEnded?: Duration | "forever";
  queues?: Readonly<Record<string, QueueOptions>>;
  purgeEvery?: Duration;
  lease?: Duration;
  /** Limits and retentions of the inbox, as in open(). */
  inbox?: InboxOptions;
}

export type ConfigSource = HoldfastConfig | (() => HoldfastConfig | Promise<HoldfastConfig>);

/** The configuration file's default export, with its fields checked by the compiler. */
export function defineConfig<Source extends ConfigSource>(config: Source): Source {
  return config;
}

export const CONFIG_KNOWN = [
  "apps",
  "jobs",
  "concurrency",
  "database",
  "data",
  "schema",
  "migrate",
  "poolSize",
  "callTimeout",
  "host",
  "port",
  "environment",
  "allowedHosts",
  "keepDone",
  "keepEnded",
  "queues",
  "purgeEvery",
  "lease",
  "inbox",
] as const satisfies readonly (keyof HoldfastConfig)[];
