// Which server a client command talks to: --url, or HOLDFAST_URL; otherwise whoever has the embedded database of this
// folder, who says where it can be called; otherwise the port of the environment or of the configuration file.
import { hostname } from "node:os";
import { describeHolder, findHolder, type Holder } from "../db/folder-holder.ts";
import { FolderLocked } from "../errors.ts";
import { type LoadedConfig, loadConfig } from "./config-file.ts";
import { type Env, type Found, toUrl } from "./env.ts";
import { EXIT } from "./exit-codes.ts";
import { Problem } from "./problem.ts";
import { embeddedFolder, resolveSettings, type ServerFlags } from "./settings.ts";

export interface FindServerInput {
  /** What --url said. */
  url: string | undefined;
  env: Env;
  /** Where the command was called: its configuration file may say which folder and which port. */
  cwd: string;
  /** Of commands that have them: --data, --embedded. */
  flags?: ServerFlags & { config?: string };
}

export async function findServer({ url, env, cwd, flags = {} }: FindServerInput): Promise<Found<string>> {
  if (url !== undefined) return { value: toUrl("--url", url), source: "--url" };
  if (env.url) return env.url;
  const { data, embedded, config } = flags;
  const place = { ...(data !== undefined && { data }), ...(embedded && { embedded }) };
  // Without the configuration file first: most often it has nothing to say about this, and loading it runs code.
  const first = embeddedFolder(resolveSettings(place, env, null));
  const holder = first === undefined ? null : await findHolder(first);
  const there = addressOf(holder);
  if (there !== null) return { value: there, source: `the server that has ${first}` };
  const settings = resolveSettings(place, env, await loadedOrNone(cwd, config));
  const { port } = settings;
  const folder = embeddedFolder(settings);
  const other = folder === undefined || folder === first ? null : await findHolder(folder);
  const elsewhere = addressOf(other);
  if (elsewhere !== null) return { value: elsewhere, source: `the server that has ${folder}` };
  const silent = folder === first ? holder : other;
  // A port that somebody named is asked, whoever has the folder.
  if (silent !== null && port.source === "default") throw servesNoHttp(folder ?? "", silent);
  return { value: `http://127.0.0.1:${port.value}`, source: port.source };
}

/** A holder on another machine says where it is called there. */
function addressOf(holder: Holder | null): string | null {
  if (holder === null || holder.host !== hostname() || holder.url === null) return null;
  return holder.url.startsWith("http://") && URL.canParse(holder.url) ? holder.url : null;
}

/** A faulty file is the server's trouble; here it only has nothing to say. */
async function loadedOrNone(cwd: string, asked: string | undefined): Promise<LoadedConfig | null> {
  return await loadConfig(cwd, asked).catch(() => null);
}

function servesNoHttp(folder: string, holder: Holder): Problem {
  return new Problem(
    `The embedded database in ${folder} is in use by ${describeHolder(holder)}, which serves no HTTP, or not yet.`,
    "Stop it and start `holdfast dev`; or, if it serves the API in its own way, say where with --url or HOLDFAST_URL.",
    EXIT.temporary,
    { code: "HOLDFAST_FOLDER_LOCKED" },
  );
}

/** For what works on the database itself and has no counterpart over HTTP: says so, instead of only who has it. */
export function explainLocked(what: string, hint: string): (error: unknown) => never {
  return (error) => {
    if (!(error instanceof FolderLocked)) throw error;
    const message = `${error.message} ${what} works on the database itself, and cannot be done over HTTP.`;
    throw new Problem(message, hint, EXIT.temporary, { code: error.code, cause: error });
  };
}
