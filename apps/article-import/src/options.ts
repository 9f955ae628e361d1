// What can be chosen, checked once, at start.
import { type Duration, durationMs, OptionInvalid } from "holdfast";

export interface ImportOptions {
  /** Links of one import at a time. */
  concurrency?: number;
  attempts?: number;
  /** The pauses between the tries. */
  ladder?: readonly Duration[];
  /** For one page, with its redirects. */
  fetchTimeout?: Duration;
  maxPageBytes?: number;
  /** Pages of one host at a time, over all imports and processes. */
  perHost?: number;
  /** Between two pages of one host. */
  hostDelay?: Duration;
  /** What robots.txt forbids is an error with that reason; "ignore" fetches it, and the log says so at start. */
  robots?: "obey" | "ignore";
  userAgent?: string;
  /** Origins with a numeric address that may be imported from although they are not public: "http://10.1.2.3:8080". */
  allowOrigins?: readonly string[];
  /** How long an article waits for a client before it is fetched again, and how often it is. */
  pickupTtl?: Duration;
  pickupTries?: number;
  maxLinks?: number;
  /** For reading one page. */
  readTimeout?: Duration;
  readMemoryMb?: number;
  threads?: number;
  /** How long a finished import stays listed. */
  keep?: Duration | "forever";
  /** ARTICLES_IMPORT_WORKER_DISABLED: imports are taken, and run by other processes. */
  workerDisabled?: boolean;
}

export type ResolvedOptions = Required<ImportOptions>;

const DEFAULTS: ResolvedOptions = {
  concurrency: 3,
  attempts: 3,
  ladder: ["5s", "30s"],
  fetchTimeout: "15s",
  maxPageBytes: 5 * 1_048_576,
  perHost: 2,
  hostDelay: "500ms",
  robots: "obey",
  userAgent: "HoldfastArticles/0.1",
  allowOrigins: [],
  pickupTtl: "24h",
  pickupTries: 3,
  maxLinks: 5_000,
  readTimeout: "10s",
  readMemoryMb: 192,
  threads: 1,
  keep: "30d",
  workerDisabled: false,
};

export type Environment = Readonly<Record<string, string | undefined>>;

export function readOptions(given: ImportOptions, env: Environment): ResolvedOptions {
  const unknown = Object.keys(given).find((name) => !(name in DEFAULTS));
  if (unknown !== undefined) {
    throw new OptionInvalid(
      `articleImport() has no option ${unknown}.`,
      `There are ${Object.keys(DEFAULTS).join(", ")}.`,
    );
  }
  const options: ResolvedOptions = { ...DEFAULTS, workerDisabled: readSwitch(env), ...given };
  for (const name of ["fetchTimeout", "hostDelay", "pickupTtl", "readTimeout"] as const) {
    durationMs(`articleImport().${name}`, options[name]);
  }
  for (const [name, least, most] of [
    ["maxPageBytes", 1_024, 100 * 1_048_576],
    ["perHost", 1, 100],
    ["maxLinks", 1, 100_000],
    ["readMemoryMb", 32, 4_096],
    ["threads", 1, 16],
  ] as const) {
    const value = options[name];
    if (!Number.isInteger(value) || value < least || value > most) {
      throw new OptionInvalid(
        `articleImport().${name} is ${String(value)}.`,
        `Give a whole number from ${least} to ${most}.`,
      );
    }
  }
  if (options.robots !== "obey" && options.robots !== "ignore") {
    throw new OptionInvalid(`articleImport().robots is ${JSON.stringify(options.robots)}.`, 'Give "obey" or "ignore".');
  }
  for (const origin of options.allowOrigins) checkOrigin(origin);
  return options;
}

/** How long one link may take: robots.txt, the page, reading it, and waiting for the thread that reads. */
export function longestRunMs({ fetchTimeout, readTimeout }: ResolvedOptions): number {
  const fetchMs = durationMs("fetchTimeout", fetchTimeout);
  return 60_000 + 2 * fetchMs + 3 * durationMs("readTimeout", readTimeout);
}

const SWITCH = "ARTICLES_IMPORT_WORKER_DISABLED";

function readSwitch(env: Environment): boolean {
  const value = env[SWITCH];
  if (value === undefined || value === "" || value === "false" || value === "0") return false;
  if (value === "true" || value === "1") return true;
  throw new OptionInvalid(`${SWITCH} is ${JSON.stringify(value)}.`, "Give true or false.");
}

/** A name would be looked up again for each page, and could come to mean anything: only addresses are allowed by hand. */
function checkOrigin(origin: string): void {
  const url = URL.canParse(origin) ? new URL(origin) : undefined;
  if (url?.origin === origin && /^(\[[0-9a-f:]+\]|\d+\.\d+\.\d+\.\d+)$/.test(url.hostname)) return;
  throw new OptionInvalid(
    `articleImport().allowOrigins has ${JSON.stringify(origin)}.`,
    'Give an origin with a numeric address, such as "http://10.1.2.3:8080".',
  );
}
