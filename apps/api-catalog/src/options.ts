// What can be chosen, checked once, at start.
import { type Duration, durationMs, OptionInvalid } from "holdfast";
import { embedderFrom, type EmbedderOptions } from "./embedders/options.ts";
import type { PgvectorUse } from "./pgvector/chore.ts";

export interface CatalogOptions {
  /** Default: what API_CATALOG_EMBEDDER says, or the lexical one. */
  embedder?: EmbedderOptions;
  /** Operations that are embedded in one call, at most: it shrinks while calls are too slow. */
  batchSize?: number;
  /** How long a process may be silent before another takes its spec over. */
  leaseDuration?: Duration;
  /** How long one call of the embedder may take. */
  embedTimeout?: Duration;
  /** Specs that one process embeds at a time. */
  workers?: number;
  /** Tries in a row that embedded nothing, before it is given up. */
  attempts?: number;
  /** The pauses between the tries. */
  ladder?: readonly Duration[];
  /** How often it is looked whether something is missing. */
  reconcileEvery?: Duration;
  /** How long a spec rests whose job was given up; twice as long after each time, up to a day. */
  parkFor?: Duration;
  maxDocumentBytes?: number;
  /** "auto": when the database has it. "create": made if it is not there, and this role may. "off": never. */
  pgvector?: PgvectorUse;
}

export type ResolvedOptions = Required<CatalogOptions>;
export type Environment = Readonly<Record<string, string | undefined>>;

const DEFAULTS: Omit<ResolvedOptions, "embedder"> = {
  batchSize: 32,
  leaseDuration: "10m",
  embedTimeout: "5m",
  workers: 1,
  attempts: 5,
  ladder: ["10s", "20s", "40s", "80s"],
  reconcileEvery: "5m",
  parkFor: "10m",
  maxDocumentBytes: 32 * 1_048_576,
  pgvector: "auto",
};

export function readOptions(given: CatalogOptions, env: Environment): ResolvedOptions {
  const set = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) as CatalogOptions;
  const options: ResolvedOptions = { ...DEFAULTS, ...set, embedder: set.embedder ?? embedderFrom(env) };
  const known = [...Object.keys(DEFAULTS), "embedder"];
  const unknown = Object.keys(given).find((name) => !known.includes(name));
  if (unknown !== undefined) {
    throw new OptionInvalid(`apiCatalog() has no option ${unknown}.`, `There are ${known.join(", ")}.`);
  }
  for (const name of ["leaseDuration", "embedTimeout", "reconcileEvery", "parkFor"] as const) {
    durationMs(`apiCatalog().${name}`, options[name]);
  }
  for (const [name, least, most] of [
    ["batchSize", 1, 2_048],
    ["workers", 1, 100],
    ["attempts", 1, 1_000],
    ["maxDocumentBytes", 1_024, 256 * 1_048_576],
  ] as const) {
    const value = options[name];
    if (!Number.isInteger(value) || value < least || value > most) {
      throw new OptionInvalid(
        `apiCatalog().${name} is ${String(value)}.`,
        `Give a whole number from ${least} to ${most}, or leave it out for ${DEFAULTS[name]}.`,
      );
    }
  }
  if (!["auto", "create", "off"].includes(options.pgvector)) {
    throw new OptionInvalid(
      `apiCatalog().pgvector is ${JSON.stringify(options.pgvector)}.`,
      'Give "auto", "create" or "off".',
    );
  }
  return options;
}
