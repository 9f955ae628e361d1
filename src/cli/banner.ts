// What a server process says when it is ready: where its data is, what that promises, where to call it, and lines to
// paste into another terminal. On a terminal a page of text; anywhere else the same as one log line.
import { resolve } from "node:path";
import type { HttpServer } from "../http/serve.ts";
import { isBatchKind } from "../job/define-batch.ts";
import { jsonSchemaOf } from "../job/json-schema.ts";
import { examplePayload } from "./example-payload.ts";
import type { Log } from "./log.ts";
import { maskUrl } from "./mask.ts";
import { printable } from "./printable.ts";
import { embeddedFolder, type Settings } from "./settings.ts";

const PROMISES = {
  embedded: "Survives the death of its process, not of the machine; one process at a time. For more, set DATABASE_URL.",
  memory: "Nothing survives: the database is in memory and ends with this process.",
  server: "An accepted job is never lost, and any number of processes may share the database.",
} as const;

export interface BannerInput {
  command: string;
  version: string;
  settings: Settings;
  /** With those of the apps. */
  kinds: readonly string[];
  server: HttpServer | undefined;
  log: Log;
  write: (text: string) => void;
}

export function sayReady({ command, version, settings, kinds, server, log, write }: BannerInput): void {
  const apps = settings.apps.value.map((app) => app.name);
  const tier = tierOf(settings);
  const data = dataOf(settings);
  const promise = PROMISES[tier];
  const isHealthOnly = command === "worker";
  const tries = server && !isHealthOnly ? waysToEnqueue(settings, server) : [];
  if (log.format === "json") {
    log.info("Ready", {
      command,
      version,
      tier,
      data,
      promise,
      kinds,
      apps: apps.length === 0 ? undefined : apps,
      concurrency: settings.concurrency.value,
      url: server?.url,
      try: tries.length === 0 ? undefined : tries,
    });
    return;
  }
  if (!log.shows("info")) return;
  const samples = settings.jobs.source === "samples" ? "  (samples: there is no holdfast.config.ts here)" : "";
  const access = isHealthOnly
    ? "health checks only"
    : server?.isAnonymous
      ? "open to this machine only"
      : `with ${settings.token.value === undefined ? "a token; `holdfast token list` says which" : "the token in HOLDFAST_TOKEN"}`;
  const lines = [
    "",
    `  Holdfast ${version}, ${command}`,
    "",
    `  Data      ${printable(data)}  (${tier === "server" ? `schema ${settings.schema.value}` : "embedded PostgreSQL"})`,
    `  Promise   ${promise}`,
    ...settings.apps.value.map(({ name, page }, index) => {
      const where = page && server && !isHealthOnly ? `  ${callableUrl(server)}/apps/${name}/` : "";
      return `  ${index === 0 ? "Apps" : "    "}      ${name}${where}`;
    }),
    `  Kinds     ${kinds.join(", ")}${samples}`,
    `  Slots     ${settings.concurrency.value}`,
    ...(server ? [`  HTTP      ${server.url}  (${access})`] : []),
    "",
    ...(tries.length === 0 ? [] : ["  From another terminal:", ...tries.map((line) => `    ${line}`), ""]),
    "  Ctrl-C stops it; a second Ctrl-C stops it at once.",
    "",
    "",
  ];
  write(lines.join("\n"));
}

function tierOf(settings: Settings): keyof typeof PROMISES {
  if (settings.database.value === "memory:") return "memory";
  return embeddedFolder(settings) === undefined ? "server" : "embedded";
}

function dataOf(settings: Settings): string {
  const folder = embeddedFolder(settings);
  if (folder !== undefined) return resolve(folder);
  return settings.database.value === "memory:" ? "in memory" : maskUrl(settings.database.value ?? "");
}

/** Lines that work as they stand, as far as the schema of the first kind says what it takes. */
function waysToEnqueue({ jobs }: Settings, server: HttpServer): string[] {
  const first = jobs.value.find((known) => !isBatchKind(known));
  if (!first) return [];
  const { kind, schema } = first;
  // Also where a configuration lists the samples: their payload is known.
  const isSample = kind === "sample.hello";
  const example = isSample ? { name: "Ada" } : examplePayload(schema ? jsonSchemaOf(schema) : null);
  // In quotes for a shell.
  const payload = JSON.stringify(example).replaceAll("'", "");
  const url = callableUrl(server);
  const where = url === "http://127.0.0.1:7070" ? "" : ` --url ${url}`;
  const token = server.isAnonymous ? "" : ' -H "authorization: Bearer $HOLDFAST_TOKEN"';
  const body = `{"kind":"${kind}","payload":${payload}}`;
  const batch = isSample
    ? [`seq 100 | npx holdfast batches create sample.check --file - --field n --wait${where}`]
    : [];
  return [
    `npx holdfast enqueue ${kind} '${payload}' --wait${where}`,
    `curl ${url}/api/v1/jobs -H "content-type: application/json"${token} -d '${body}'`,
    ...batch,
  ];
}

/** 0.0.0.0 is where one listens, not where one calls. */
export function callableUrl({ url, port }: HttpServer): string {
  return /^http:\/\/(0\.0\.0\.0|\[::\]):/.test(url) ? `http://127.0.0.1:${port}` : url;
}
