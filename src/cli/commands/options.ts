// Flags that several commands share, and what they become.
import type { Command } from "commander";
import { type Api, makeApi } from "../api.ts";
import { type BatchesApi, makeBatchesApi } from "../batches-api.ts";
import { type InboxApi, makeInboxApi } from "../inbox-api.ts";
import { type ConfigLoader, makeConfigLoader } from "../config-file.ts";
import { readEnv } from "../env.ts";
import { EXIT } from "../exit-codes.ts";
import { findServer } from "../find-server.ts";
import { type Log, openLog } from "../log.ts";
import type { DataFlags } from "../output.ts";
import { Problem } from "../problem.ts";
import { resolveSettings, type ServerFlags, type Settings } from "../settings.ts";
import { durationMs } from "../../shared/duration.ts";

export interface LogFlags {
  log?: string;
  quiet?: boolean;
  verbose?: boolean;
}

export type ServerOptions = ServerFlags & LogFlags & { config?: string };

export function withDatabaseFlags(command: Command): Command {
  return command
    .option("--config <file>", "the configuration file (default: holdfast.config.ts and the like, in this folder)")
    .option("--embedded", "the embedded database, by name, even if DATABASE_URL is set")
    .option("--data <folder>", "where the embedded database is (HOLDFAST_DATA, default ./.holdfast)")
    .option("--schema <name>", "the schema in the database (HOLDFAST_SCHEMA, default holdfast)");
}

export function withWorkerFlags(command: Command): Command {
  return withDatabaseFlags(command)
    .option("--concurrency <number>", "how many jobs run at once (default 10)")
    .option("--grace <duration>", 'how long a stop waits for running jobs (default "25s")')
    .option("--log <format>", "human or json (default: human on a terminal, otherwise json)")
    .option("-q, --quiet", "only warnings and errors")
    .option("-v, --verbose", "everything, with stacks");
}

export function withHttpFlags(command: Command): Command {
  return command
    .option("--host <host>", "where to listen (HOLDFAST_HOST, default 127.0.0.1); elsewhere needs HOLDFAST_TOKEN")
    .option("--port <port>", "where to listen (HOLDFAST_PORT, default 7070; 0 lets the system choose)");
}

export function withHealthFlags(command: Command): Command {
  return command
    .option("--host <host>", "where to answer health checks (HOLDFAST_HOST, default 127.0.0.1)")
    .option("--health-port <port>", "answer /livez, /readyz, /healthz and /metrics here (HOLDFAST_HEALTH_PORT)");
}

export interface ClientFlags extends DataFlags {
  url?: string;
  verbose?: boolean;
}

export function withDataFlags(command: Command): Command {
  return command.option("--json", "print one JSON document").option("--ndjson", "print one JSON object per line");
}

export function withClientFlags(command: Command): Command {
  return withServerFlags(withDataFlags(command));
}

/** For commands whose output has one form. */
export function withServerFlags(command: Command): Command {
  return command
    .option(
      "--url <url>",
      "the server (HOLDFAST_URL; default: the one that has this folder's database, or http://127.0.0.1:7070); its token is HOLDFAST_TOKEN",
    )
    .option("-v, --verbose", "say more about errors");
}

/** How long --wait waits, in milliseconds; for ever if --timeout does not say. */
export function readTimeout({ wait, timeout }: { wait?: boolean; timeout?: string }): number {
  if (timeout === undefined) return Infinity;
  if (wait) return durationMs("--timeout", timeout);
  throw new Problem("--timeout is given without --wait.", "Give both, or neither.", EXIT.usage);
}

export interface ReadSettings {
  settings: Settings;
  isProduction: boolean;
  /** To read them again after the configuration file has changed. */
  reload: { loader: ConfigLoader; read(): Promise<Settings> };
}

export async function readSettings(options: ServerOptions): Promise<ReadSettings> {
  const env = readEnv(process.env);
  const loader = makeConfigLoader(process.cwd(), options.config);
  const file = await loader.load();
  const settings = resolveSettings(options, env, file);
  const read = async (): Promise<Settings> => {
    const now = await loader.load();
    if (now === null && file !== null) {
      throw new Problem(`${file.name} is not there any more.`, "Bring it back, or start again without it.", EXIT.usage);
    }
    return resolveSettings(options, env, now);
  };
  return { settings, isProduction: env.isProduction, reload: { loader, read } };
}

export function readLog({ log: format, quiet, verbose }: LogFlags): Log {
  if (format !== undefined && format !== "human" && format !== "json") {
    throw new Problem(`--log is ${JSON.stringify(format)}.`, "Give human or json.", EXIT.usage);
  }
  return openLog({ format, level: verbose ? "debug" : quiet ? "warn" : "info" });
}

type ServerPlace = ServerFlags & { url?: string; config?: string };

async function readServer({ url, ...flags }: ServerPlace): Promise<[url: string, token: string | undefined]> {
  const env = readEnv(process.env);
  const { value } = await findServer({ url, env, cwd: process.cwd(), flags });
  return [value, env.token?.value];
}

export const readApi = async (flags: ServerPlace): Promise<Api> => makeApi(...(await readServer(flags)));
export const readBatchesApi = async (flags: ServerPlace): Promise<BatchesApi> =>
  makeBatchesApi(...(await readServer(flags)));
export const readInboxApi = async (flags: ServerPlace): Promise<InboxApi> => makeInboxApi(...(await readServer(flags)));
