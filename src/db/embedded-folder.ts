// The embedded folder: <folder>/pgdata is PostgreSQL's, <folder>/holdfast.json says what made it, and the socket of
// folder-lock.ts lies beside them.
//
// Promises: a first start is atomic (a start that was killed leaves pgdata.init-*, which the next one removes); what
// cannot be opened is refused with what to do, and nothing that might be somebody's data is ever removed or replaced.
import { constants } from "node:fs";
import { access, mkdir, open, readFile, readdir, realpath, rename, rm, stat, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { FolderUnusable, OptionInvalid } from "../errors.ts";
import { codeOf } from "./retryable.ts";

/** Of the PGlite that package.json pins: test/db/embedded-folder.test.ts compares it with what the engine says. */
export const POSTGRES_MAJOR = "18";
const CONTROL_VERSION = 1800;
const CONTROL_SIZE = 8192;

const INIT_PREFIX = "pgdata.init-";
const UNTOUCHED = "Nothing in it was changed.";
const START_ANEW = "To start with an empty database, move the folder away or choose another.";

export interface FolderVersions {
  pgliteVersion: string;
  pgVersion: string;
}

interface FolderNote extends FolderVersions {
  createdAt: string;
}

/** Makes the folder if it is missing. Returns its one true path. */
export async function makeFolder(folder: string): Promise<string> {
  if (typeof folder !== "string" || folder.trim() === "" || folder.includes("\0")) {
    throw new OptionInvalid(`The embedded folder is ${JSON.stringify(folder)}.`, 'Write a path: "./.holdfast".');
  }
  const path = resolve(folder);
  try {
    // The rows may hold what other users of the machine should not read.
    const made = await mkdir(path, { recursive: true, mode: 0o700 });
    await access(path, constants.R_OK | constants.W_OK | constants.X_OK);
    if (made !== undefined) await writeFile(join(path, ".gitignore"), "*\n");
    return await realpath(path);
  } catch (error) {
    const code = codeOf(error);
    if (code === "EEXIST" || code === "ENOTDIR") {
      const hint = "Choose another folder, or move the file away.";
      throw new FolderUnusable(`${path} is a file, or lies below one.`, hint, { cause: error });
    }
    const hint = "Give this user the right to write there, or choose another folder (HOLDFAST_DATA).";
    throw new FolderUnusable(`The folder ${path} cannot be written (${String(code)}).`, hint, { cause: error });
  }
}

/**
 * The path of a pgdata that can be opened. `initialise` makes one in an empty folder and leaves it closed. The caller
 * holds the lock.
 */
export async function readyPgdata(folder: string, initialise: (pgdata: string) => Promise<void>): Promise<string> {
  const names = await readdir(folder);
  await Promise.all(
    names
      .filter((name) => name.startsWith(INIT_PREFIX))
      .map((name) => rm(join(folder, name), { recursive: true, force: true })),
  );
  const pgdata = join(folder, "pgdata");
  if (names.includes("pgdata")) {
    await check(folder, pgdata);
    return pgdata;
  }
  if (names.includes("PG_VERSION")) {
    const hint = "Give the folder that is to contain it, not the data folder of PostgreSQL itself.";
    throw new FolderUnusable(`The folder ${folder} is itself a data folder of PostgreSQL. ${UNTOUCHED}`, hint);
  }
  const note = await readNote(folder);
  if (note !== null) {
    const message = `The folder ${folder} had a database (made ${note.createdAt}), but its pgdata is gone. ${UNTOUCHED}`;
    throw new FolderUnusable(message, `Put pgdata back. ${START_ANEW}`);
  }
  const unfinished = join(folder, `${INIT_PREFIX}${process.pid}`);
  await initialise(unfinished);
  await rename(unfinished, pgdata);
  await syncFolder(folder);
  return pgdata;
}

/** After the folder was opened: what it is now. */
export async function writeNote(folder: string, versions: FolderVersions): Promise<void> {
  const known = await readNote(folder);
  if (known?.pgliteVersion === versions.pgliteVersion && known.pgVersion === versions.pgVersion) return;
  const note: FolderNote = { ...versions, createdAt: known?.createdAt ?? new Date().toISOString() };
  const path = join(folder, "holdfast.json");
  await writeFile(`${path}.new`, `${JSON.stringify(note, null, 2)}\n`);
  await rename(`${path}.new`, path);
}

async function readNote(folder: string): Promise<FolderNote | null> {
  try {
    const note: FolderNote = JSON.parse(await readFile(join(folder, "holdfast.json"), "utf8"));
    return note;
  } catch (error) {
    // Unreadable counts as missing: it is for people, pgdata decides.
    if (error instanceof SyntaxError || codeOf(error) === "ENOENT") return null;
    throw error;
  }
}

async function check(folder: string, pgdata: string): Promise<void> {
  const version = (await readFile(join(pgdata, "PG_VERSION"), "utf8").catch(() => "")).trim();
  if (version === "") {
    throw incomplete(pgdata, "it has no PG_VERSION");
  }
  if (version !== POSTGRES_MAJOR) {
    const note = await readNote(folder);
    const madeBy = note ? ` (PGlite ${note.pgliteVersion}, made ${note.createdAt})` : "";
    const message =
      `The folder ${folder} holds a database of PostgreSQL ${version}${madeBy}; ` +
      `this version of Holdfast embeds PostgreSQL ${POSTGRES_MAJOR}. ${UNTOUCHED}`;
    throw new FolderUnusable(message, `Open it with the version of Holdfast that made it. ${START_ANEW}`);
  }
  const control = join(pgdata, "global", "pg_control");
  const size = (await stat(control).catch(() => null))?.size;
  if (size === undefined) throw incomplete(pgdata, "it has no global/pg_control");
  if (size !== CONTROL_SIZE) throw incomplete(pgdata, `its global/pg_control has ${size} bytes`);
  // The bytes: 8 of the system's identifier, then the version of the format.
  const format = (await readFile(control)).readUInt32LE(8);
  if (format !== CONTROL_VERSION) throw incomplete(pgdata, `its global/pg_control has format ${format}`);
}

function incomplete(pgdata: string, what: string): FolderUnusable {
  const hint = `Restore the folder from a backup, with the process stopped while you copy. ${START_ANEW}`;
  return new FolderUnusable(`${pgdata} is not a complete database: ${what}. ${UNTOUCHED}`, hint);
}

/** What is open failed although the folder looked right. */
export function cannotOpen(folder: string, cause: unknown): FolderUnusable {
  const why = cause instanceof Error ? cause.message : String(cause);
  const hint = `Keep a copy of the folder, then restore a backup. ${START_ANEW}`;
  return new FolderUnusable(`The database in ${folder} cannot be opened: ${why}`, hint, { cause });
}

async function syncFolder(folder: string): Promise<void> {
  // Windows cannot open a folder to sync it.
  const handle = await open(folder, "r").catch(() => null);
  try {
    await handle?.sync().catch(() => {});
  } finally {
    await handle?.close();
  }
}
