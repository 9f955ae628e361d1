// Flags that several commands share, and what they become.
import type { Command } from "commander";
import { type Api, makeApi, serverUrl } from "../api.ts";
import { type BatchesApi, makeBatchesApi } from "../batches-api.ts";
import { type InboxApi, makeInboxApi } from "../inbox-api.ts";
import { loadConfig } from "../config-file.ts";
import { readEnv, toUrl } from "../env.ts";
import { EXIT } from "../exit-codes.ts";
import { type Log, openLog } from "../log.ts";
import type { DataFlags } from "../output.ts";
import { Problem } from "../problem.ts";
import { resolveSettings, type ServerFlags, type Settings } from "../settings.ts";

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
    .option("--url <url>", "the server (HOLDFAST_URL, default http://127.0.0.1:7070); its token is HOLDFAST_TOKEN")
    .option("-v, --verbose", "say more about errors");
}

export async function readSettings(options: ServerOptions): Promise<{ settings: Settings; isProduction: boolean }> {
  const env = readEnv(process.env);
  const file = await loadConfig(process.cwd(), options.config);
  return { settings: resolveSettings(options, env, file), isProduction: env.isProduction };
}

export function readLog({ log: format, quiet, verbose }: LogFlags): Log {
  if (format !== undefined && format !== "human" && format !== "json") {
    throw new Problem(`--log is ${JSON.stringify(format)}.`, "Give human or json.", EXIT.usage);
  }
  return openLog({ format, level: verbose ? "debug" : quiet ? "warn" : "info" });
}

export function readInboxApi(options: { url?: string }): InboxApi {
  const env = readEnv(process.env);
  const flag = options.url === undefined ? undefined : toUrl("--url", options.url);
  return makeInboxApi(serverUrl(flag, env), env.token?.value);
}

export function readBatchesApi(options: { url?: string }): BatchesApi {
  const env = readEnv(process.env);
  const flag = options.url === undefined ? undefined : toUrl("--url", options.url);
  return makeBatchesApi(serverUrl(flag, env), env.token?.value);
}

export function readApi(options: { url?: string }): Api {
  const env = readEnv(process.env);
  const flag = options.url === undefined ? undefined : toUrl("--url", options.url);
  return makeApi(serverUrl(flag, env), env.token?.value);
}
