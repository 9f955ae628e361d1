// A parcel's content in a folder, safely: bytes go to a part file that only this user can read, a broken fetch goes on
// where it stopped, the hash is checked, and the file appears under its name at once and whole. Nothing is overwritten, no
// symbolic link is followed, and saving the same parcel again finds it there instead of making a second copy.
import { createHash, type Hash } from "node:crypto";
import { constants } from "node:fs";
import { type FileHandle, link, lstat, mkdir, open, realpath, rename, unlink } from "node:fs/promises";
import { join } from "node:path";
import { codeOf } from "../db/retryable.ts";
import { ContentCorrupt, OptionInvalid, StateConflict } from "../errors.ts";
import { isUuid } from "../shared/uuid.ts";
import { safeName } from "./safe-name.ts";

/** What `saveFile` saves: what it is called, how long it is, its hash, and how to read it from a place on. */
export interface FileSource {
  id: string;
  name: string;
  size: number;
  sha256: string;
  /** The content from this byte on. */
  read(start: number): AsyncIterable<Uint8Array>;
}

/** Where `saveFile` put it, and whether it was there before. */
export interface SavedFile {
  path: string;
  /** It was there already, whole: nothing was fetched. */
  wasThere: boolean;
  /** How much an earlier, broken fetch had left. */
  resumedAt: number;
}

const { O_CREAT, O_EXCL, O_NOFOLLOW, O_RDONLY, O_RDWR } = constants;
const MODE = 0o600;
const BLOCK = 262_144;

/**
 * Saves content into a folder: appears under its name only whole and verified, goes on where an earlier try stopped,
 * overwrites nothing.
 */
export async function saveFile(
  source: FileSource,
  into: string,
  onProgress: (done: number) => void = () => {},
): Promise<SavedFile> {
  if (!isUuid(source.id)) throw new OptionInvalid(`The parcel id is ${JSON.stringify(source.id)}.`, "Give its id.");
  await mkdir(into, { recursive: true, mode: 0o700 });
  const folder = await realpath(into);
  const path = join(folder, fileName(source));
  const part = join(folder, `.${source.id}.part`);
  if (await isThere(path, source)) {
    // Left by a process that ended between the two names.
    await unlink(part).catch(() => {});
    return { path, wasThere: true, resumedAt: 0 };
  }
  const file = await openPart(part);
  let resumedAt: number;
  try {
    resumedAt = await fill(file, source, onProgress, () => unlink(part));
    await file.sync();
  } finally {
    await file.close();
  }
  await appear(part, path);
  await syncFolder(folder);
  return { path, wasThere: false, resumedAt };
}

/** What `saveFile` calls the file of a parcel: the id makes it this parcel's own, whatever others are called. */
export const fileName = ({ id, name }: Pick<FileSource, "id" | "name">): string => `${id}-${safeName(name)}`;

async function isThere(path: string, source: FileSource): Promise<boolean> {
  const found = await lstat(path).catch((error: unknown) => {
    if (codeOf(error) === "ENOENT") return undefined;
    throw error;
  });
  if (!found) return false;
  if (found.isFile() && found.size === source.size) {
    const file = await open(path, O_RDONLY | O_NOFOLLOW);
    try {
      const hash = createHash("sha256");
      await hashSoFar(file, source.size, hash);
      if (hash.digest("hex") === source.sha256) return true;
    } finally {
      await file.close();
    }
  }
  throw new StateConflict(
    `${path} is there and is not the content of parcel ${source.id}.`,
    "Nothing is overwritten: move it away, then fetch again.",
  );
}

async function openPart(part: string): Promise<FileHandle> {
  try {
    return await open(part, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, MODE);
  } catch (error) {
    if (codeOf(error) !== "EEXIST") throw error;
  }
  // ELOOP for a symbolic link.
  const file = await open(part, O_RDWR | O_NOFOLLOW).catch((error: unknown) => {
    throw notOurs(part, error);
  });
  const found = await file.stat();
  const isMine = process.getuid === undefined || found.uid === process.getuid();
  if (found.isFile() && found.nlink === 1 && isMine) return file;
  await file.close();
  throw notOurs(part);
}

function notOurs(part: string, cause?: unknown): StateConflict {
  return new StateConflict(`${part} is not a plain file of this user.`, "Move it away, then fetch again.", { cause });
}

/** Writes what is missing. Returns how much was there. */
async function fill(
  file: FileHandle,
  source: FileSource,
  onProgress: (done: number) => void,
  discard: () => Promise<void>,
): Promise<number> {
  const hash = createHash("sha256");
  let { size: done } = await file.stat();
  if (done > source.size) done = 0;
  await hashSoFar(file, done, hash);
  const resumedAt = done;
  onProgress(done);
  if (done < source.size) {
    for await (const bytes of source.read(done)) {
      if (done + bytes.byteLength > source.size) throw tooMuch(source);
      await writeAll(file, bytes, done);
      hash.update(bytes);
      done += bytes.byteLength;
      onProgress(done);
    }
  }
  // Kept for the next time.
  if (done < source.size) throw tooLittle(source, done);
  await file.truncate(done);
  if (hash.digest("hex") === source.sha256) return resumedAt;
  await discard();
  throw new ContentCorrupt(
    `What arrived of parcel ${source.id} does not have the SHA-256 ${source.sha256}.`,
    "It was thrown away; fetch it again.",
  );
}

async function hashSoFar(file: FileHandle, size: number, hash: Hash): Promise<void> {
  const block = Buffer.allocUnsafe(Math.min(BLOCK, Math.max(size, 1)));
  for (let at = 0; at < size;) {
    const { bytesRead } = await file.read(block, 0, Math.min(block.length, size - at), at);
    if (bytesRead === 0) throw new Error("The file became shorter while it was read.");
    hash.update(block.subarray(0, bytesRead));
    at += bytesRead;
  }
}

async function writeAll(file: FileHandle, bytes: Uint8Array, position: number): Promise<void> {
  for (let at = 0; at < bytes.byteLength;) {
    const { bytesWritten } = await file.write(bytes, at, bytes.byteLength - at, position + at);
    at += bytesWritten;
  }
}

/** Under its name only if there is none: link() never replaces anything. */
async function appear(part: string, path: string): Promise<void> {
  try {
    await link(part, path);
  } catch (error) {
    // A file system without hard links.
    if (!["EPERM", "ENOTSUP", "ENOSYS", "EMLINK"].includes(codeOf(error) ?? "")) throw error;
    await rename(part, path);
    return;
  }
  await unlink(part);
}

async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, O_RDONLY).catch(() => undefined);
  await handle?.sync().catch(() => {});
  await handle?.close();
}

function tooMuch({ id, size }: FileSource): ContentCorrupt {
  return new ContentCorrupt(`More than ${size} bytes arrived of parcel ${id}.`, "Fetch it again.");
}

function tooLittle({ id, size }: FileSource, done: number): ContentCorrupt {
  return new ContentCorrupt(`Only ${done} of ${size} bytes arrived of parcel ${id}.`, "Fetch again: it goes on there.");
}
