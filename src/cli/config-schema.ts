// The configuration file as a JSON Schema, for editors and for programs that write one. What it says and what is checked
// (check-config, env, options) is compared by a test.
import { OPEN_DEFAULTS, WORK_DEFAULTS } from "../options.ts";
import { INBOX_DEFAULTS, type InboxOptions } from "../options/inbox.ts";
import type { HoldfastConfig } from "./config.ts";

type Schema = Readonly<Record<string, unknown>>;

const DURATION: Schema = { type: "string", pattern: "^\\d+(\\.\\d+)?(ms|s|m|h|d)$", examples: ["30s", "5m", "168h"] };
const RETENTION: Schema = { anyOf: [DURATION, { const: "forever" }] };
const text = (description: string, more: Schema = {}): Schema => ({
  type: "string",
  minLength: 1,
  description,
  ...more,
});
const duration = (description: string, standard?: string): Schema => ({
  ...DURATION,
  description,
  ...(standard && { default: standard }),
});
const retention = (description: string, standard?: string): Schema => ({
  ...RETENTION,
  description,
  ...(standard && { default: standard }),
});
const object = (description: string, properties: Schema): Schema => ({
  type: "object",
  description,
  properties,
  additionalProperties: false,
});
/** Functions do not fit into JSON: in a .json file these stay empty. */
const code = (description: string): Schema => ({ type: "array", description });

const count = (name: keyof InboxOptions, description: string): Schema => ({
  type: "integer",
  minimum: 1,
  default: INBOX_DEFAULTS[name],
  description,
});

const INBOX: Record<keyof InboxOptions, Schema> = {
  ttl: duration("How long a parcel waits before it expires, unless its put says otherwise.", INBOX_DEFAULTS.ttl),
  maxTtl: duration("The longest that a put may ask for.", INBOX_DEFAULTS.maxTtl),
  keepAcked: duration("How long content stays readable after an ack.", INBOX_DEFAULTS.keepAcked),
  keepTombstones: duration("How long a tombstone is kept.", INBOX_DEFAULTS.keepTombstones),
  purgeEvery: duration("How often content is purged whose time is over.", INBOX_DEFAULTS.purgeEvery),
  draftTimeout: duration("A put that was silent for so long has broken off.", INBOX_DEFAULTS.draftTimeout),
  stuckAfter: duration("When a parcel that does not move is a sign of a stuck recipient.", INBOX_DEFAULTS.stuckAfter),
  maxFileBytes: count("maxFileBytes", "The largest file."),
  maxFilesPerPut: count("maxFilesPerPut", "The most files in one put."),
  quotaBytes: count("quotaBytes", "What one recipient may have open, in bytes."),
  quotaParcels: count("quotaParcels", "What one recipient may have open, in parcels."),
};

const PROPERTIES: Record<keyof HoldfastConfig, Schema> = {
  apps: code("The apps that dev and start run: what defineApp() returned."),
  jobs: code("The kinds that run: what defineJob() and defineBatch() returned."),
  concurrency: {
    type: "integer",
    minimum: 1,
    maximum: 10_000,
    default: WORK_DEFAULTS.concurrency,
    description: "How many jobs run at once.",
  },
  database: text("postgres://…; nothing for the embedded database. Secrets are better kept in DATABASE_URL.", {
    pattern: "^(postgres(ql)?://|embedded:|memory:$)",
  }),
  data: text("The embedded database's folder.", { default: OPEN_DEFAULTS.data }),
  schema: text("The schema in the database.", { default: OPEN_DEFAULTS.schema }),
  migrate: {
    type: "boolean",
    default: OPEN_DEFAULTS.migrate,
    description: "Whether dev, start and worker bring the schema up to date; false: only holdfast migrate does.",
  },
  poolSize: {
    type: "integer",
    minimum: 2,
    maximum: 1_000,
    default: OPEN_DEFAULTS.poolSize,
    description: "Connections in the pool of each process.",
  },
  callTimeout: duration("How long one call to the database may take before it fails.", OPEN_DEFAULTS.callTimeout),
  host: text("Where to listen; anything but loopback needs a token.", { default: "127.0.0.1" }),
  port: {
    type: "integer",
    minimum: 0,
    maximum: 65_535,
    default: 7070,
    description: "Where to listen; 0 lets the system choose.",
  },
  environment: text("What people call this installation: it stands in the header of the dashboard.", {
    maxLength: 40,
    examples: ["production", "staging"],
  }),
  allowedHosts: {
    type: "array",
    items: { type: "string" },
    description: "Names, besides those of this machine, under which the server may be called.",
  },
  keepDone: retention("How long finished jobs stay, of kinds that do not say it themselves.", OPEN_DEFAULTS.keepDone),
  keepEnded: retention("How long cancelled and discarded jobs stay.", OPEN_DEFAULTS.keepEnded),
  queues: {
    type: "object",
    description: "The same for single queues, by name; and how long their dead jobs stay.",
    additionalProperties: object("One queue.", {
      keepDone: retention("How long its finished jobs stay."),
      keepEnded: retention("How long its cancelled and discarded jobs stay."),
      keepDead: retention("How long its dead jobs stay; for ever if it is not given."),
    }),
  },
  purgeEvery: duration("How often what is past its retention is purged.", OPEN_DEFAULTS.purgeEvery),
  lease: duration("How long after its last beat a worker is taken for dead.", OPEN_DEFAULTS.lease),
  inbox: object("Limits and retentions of the inbox.", INBOX),
};

export function configSchema(): Schema {
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title: "holdfast.config",
    description: "The configuration of Holdfast, as in holdfast.config.json, and as defineConfig() takes it.",
    ...object("", { $schema: { type: "string" }, ...PROPERTIES }),
  };
}
