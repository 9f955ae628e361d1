// The workspace's side: polls its inbox, saves each file, verifies it, acks it, and hands over messages with the files they
// mention in place. Killed at any moment it goes on where it was. Nothing is lost: the journal moves on only past what is
// done. Nothing is doubled: a file is called by its id, and one that is there is not fetched again. Nothing is shown too
// early: a message comes after the notices of its files, and those wait until the file is here, or gone for good.
import { lstat, mkdir, realpath } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { lockFolder, NotFound, OptionInvalid, savedFileName, saveFile } from "holdfast";
import type { FileFacts, Notice } from "../notices.ts";
import { AccessRefused, makeWorkspaceApi, type WorkspaceApi } from "./api.ts";
import { type Journal, type JournalEntry, openJournal, type ReceivedFile, type ReceivedMessage } from "./journal.ts";

export interface PullOptions {
  /** The server. */
  url: string;
  /** The workspace's own token. */
  token: string | undefined;
  workspace: string;
  /** A folder of its own, for this workspace alone: `files/` and `journal.ndjson` are made in it. */
  into: string;
  /** Ends when nothing is left, instead of waiting for more. */
  once?: boolean;
  /** How many files at once. Default 4. */
  parallel?: number;
  /** Ends it; what is under way is left for the next time. */
  signal?: AbortSignal;
  /** A file is here, verified and acked; or gone before it could be fetched. */
  onFile?(file: ReceivedFile): unknown;
  /** After its files. If it fails, or the process dies in it, the message comes again. */
  onMessage?(message: ReceivedMessage): unknown;
  /** What went wrong and will be tried again. */
  onTrouble?(error: unknown): void;
}

export interface Pulled {
  /** That arrived in this call. */
  files: number;
  messages: number;
  /** Files that were gone before they could be fetched. */
  gone: number;
}

interface Puller {
  api: WorkspaceApi;
  options: PullOptions;
  files: string;
  journal: Journal;
  signal: AbortSignal;
  /** Among those of one page. */
  slots: ReturnType<typeof makeSlots>;
}

const WAIT = "25s";
const FILES = "files";
const PARALLEL = 4;
const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 30_000;

export async function pullWorkspace(options: PullOptions): Promise<Pulled> {
  const { url, token, workspace, into, parallel = PARALLEL } = options;
  if (!Number.isInteger(parallel) || parallel < 1) {
    throw new OptionInvalid(`parallel is ${parallel}.`, "Give a whole number from 1.");
  }
  await mkdir(into, { recursive: true, mode: 0o700 });
  const folder = await realpath(into);
  const lock = await lockFolder(folder, { command: "holdfast workspace pull" });
  try {
    const journal = await openJournal(folder, workspace.toLowerCase());
    try {
      return await pullAll({
        api: makeWorkspaceApi(url, token, workspace),
        options,
        files: join(folder, FILES),
        journal,
        signal: options.signal ?? new AbortController().signal,
        slots: makeSlots(parallel),
      });
    } finally {
      await journal.close();
    }
  } finally {
    await lock.release();
  }
}

async function pullAll(puller: Puller): Promise<Pulled> {
  const { api, options, journal, signal } = puller;
  const pulled: Pulled = { files: 0, messages: 0, gone: 0 };
  let pauseMs = FIRST_PAUSE_MS;
  while (!signal.aborted) {
    try {
      const notices = await api.inbox(journal.last, options.once === true ? "0s" : WAIT, signal);
      if (options.once === true && notices.length === 0) break;
      await dealWith(puller, notices, pulled);
      pauseMs = FIRST_PAUSE_MS;
    } catch (error) {
      if (signal.aborted) break;
      if (error instanceof AccessRefused) throw error;
      options.onTrouble?.(error);
      await pause(pauseMs, signal);
      pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS);
    }
  }
  return pulled;
}

/** Files of a page are fetched side by side, and entered one after the other. */
async function dealWith(puller: Puller, notices: Notice[], pulled: Pulled): Promise<void> {
  const { options, journal } = puller;
  // When one of them cannot go on, the others are not left running behind the caller's back.
  const ending = new AbortController();
  const signal = AbortSignal.any([puller.signal, ending.signal]);
  const fetches = new Map(
    notices.flatMap((notice) =>
      notice.method === "chat_upload_receive" ? [[notice.seq, fetchFile(puller, notice.body, signal)]] : [],
    ),
  );
  for (const fetching of fetches.values()) fetching.catch(() => {});
  try {
    for (const notice of notices) {
      puller.signal.throwIfAborted();
      // The journal remembers one number: what came out of order would be lost behind it.
      if (notice.seq <= journal.last) throw new Error("The server's notices are out of order.");
      let entry: JournalEntry;
      if (notice.method === "chat_upload_receive") {
        const isHere = await fetches.get(notice.seq)!;
        entry = { seq: notice.seq, kind: "file", ...toReceived(notice.body, isHere) };
        await options.onFile?.(entry);
        if (isHere) pulled.files += 1;
        else pulled.gone += 1;
      } else {
        entry = await toMessage(puller, notice);
        await options.onMessage?.(entry);
        pulled.messages += 1;
      }
      await journal.append(entry);
    }
  } finally {
    ending.abort();
    await Promise.allSettled(fetches.values());
  }
}

/** Until it is here (true), or the server has it no more (false). */
async function fetchFile(puller: Puller, file: FileFacts, signal: AbortSignal): Promise<boolean> {
  let pauseMs = FIRST_PAUSE_MS;
  for (;;) {
    const release = await puller.slots.take(signal);
    try {
      return await saveAndAck(puller, file, signal);
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof AccessRefused) throw error;
      puller.options.onTrouble?.(error);
    } finally {
      release();
    }
    await pause(pauseMs, signal);
    pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS);
  }
}

async function saveAndAck({ api, files }: Puller, file: FileFacts, signal: AbortSignal): Promise<boolean> {
  const { file_id: id, name, size, sha256 } = file;
  const read = (start: number): AsyncIterable<Uint8Array> => api.content(id, start, signal);
  try {
    await saveFile({ id, name, size, sha256, read }, files);
  } catch (error) {
    if (error instanceof NotFound) return false;
    throw error;
  }
  // Last. If its time ended meanwhile there is nobody to tell, and the file is here all the same.
  await api.ack(id, signal).catch((error: unknown) => {
    if (!(error instanceof NotFound)) throw error;
  });
  return true;
}

async function toMessage({ files }: Puller, notice: Notice & { method: "chat_message" }): Promise<ReceivedMessage> {
  const { message_id: id, text, files: mentioned } = notice.body;
  const received = await Promise.all(mentioned.map(async (file) => toReceived(file, await isInside(files, file))));
  return { seq: notice.seq, kind: "message", id, text, files: received };
}

const nameOf = ({ file_id: id, name }: FileFacts): string => savedFileName({ id, name });

/** Only whole and verified files have that name. */
async function isInside(folder: string, file: FileFacts): Promise<boolean> {
  const found = await lstat(join(folder, nameOf(file))).catch(() => undefined);
  return found?.isFile() === true;
}

function toReceived(file: FileFacts, isHere: boolean): Omit<ReceivedFile, "seq" | "kind"> {
  const { file_id, name, mimeType, size, sha256 } = file;
  const uri = isHere ? `workspace:/${FILES}/${nameOf(file)}` : file.uri;
  return { file_id, name, mimeType, size, sha256, uri, isHere };
}

/** So many at once; who comes later waits in line. */
function makeSlots(count: number) {
  let free = count;
  const line: (() => void)[] = [];
  return {
    async take(signal: AbortSignal): Promise<() => void> {
      signal.throwIfAborted();
      if (free > 0) free -= 1;
      else await new Promise<void>((resolve) => line.push(resolve));
      let isHeld = true;
      const release = (): void => {
        if (!isHeld) return;
        isHeld = false;
        const next = line.shift();
        if (next) next();
        else free += 1;
      };
      if (!signal.aborted) return release;
      release();
      throw signal.reason;
    },
  };
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms * (0.75 + Math.random() / 2), undefined, { signal }).catch(() => {});
}
