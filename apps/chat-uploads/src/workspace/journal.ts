// A workspace's journal: one line for each notice that was dealt with, in order, written when that is done. The last line
// says where to go on. A line that was cut off by a crash is taken back; its notice is dealt with again. Numbers mean
// something in one workspace only, so a journal belongs to the one that its lines name.
import { constants } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { join } from "node:path";
import { OptionInvalid } from "holdfast";

export interface ReceivedFile {
  seq: number;
  kind: "file";
  file_id: string;
  name: string;
  mimeType: string;
  size: number;
  sha256: string;
  /** Where it is: "workspace:/files/…". As it was announced, if it was gone before it could be fetched. */
  uri: string;
  isHere: boolean;
}

export interface ReceivedMessage {
  seq: number;
  kind: "message";
  id: string;
  text: string;
  files: Omit<ReceivedFile, "seq" | "kind">[];
}

export type JournalEntry = ReceivedFile | ReceivedMessage;

export interface Journal {
  /** The number of the last notice that was dealt with. */
  readonly last: number;
  /** Durable when it resolves. */
  append(entry: JournalEntry): Promise<void>;
  close(): Promise<void>;
}

export const JOURNAL = "journal.ndjson";
const { O_CREAT, O_NOFOLLOW, O_RDWR } = constants;
/** More than the longest line; where that is not enough, it is doubled. */
const TAIL = 1_048_576;

export async function openJournal(folder: string, workspace: string): Promise<Journal> {
  const file = await open(join(folder, JOURNAL), O_RDWR | O_CREAT | O_NOFOLLOW, 0o600);
  try {
    const found = await findEnd(file);
    if (found.workspace !== undefined && found.workspace !== workspace) {
      throw new OptionInvalid(
        `${folder} is the folder of the workspace ${found.workspace}.`,
        "Give each workspace a folder of its own.",
      );
    }
    let { last, end } = found;
    await file.truncate(end);
    return {
      get last() {
        return last;
      },
      async append(entry) {
        const line = Buffer.from(`${JSON.stringify({ workspace, ...entry })}\n`);
        for (let at = 0; at < line.length;) {
          const { bytesWritten } = await file.write(line, at, line.length - at, end + at);
          at += bytesWritten;
        }
        await file.datasync();
        end += line.length;
        last = entry.seq;
      },
      close: () => file.close(),
    };
  } catch (error) {
    await file.close();
    throw error;
  }
}

interface JournalEnd {
  last: number;
  end: number;
  workspace?: string | undefined;
}

async function findEnd(file: FileHandle): Promise<JournalEnd> {
  const { size } = await file.stat();
  for (let length = TAIL; ; length *= 2) {
    const found = await findEndIn(file, Math.max(0, size - length), size);
    if (found) return found;
    if (length >= size) return { last: 0, end: 0 };
  }
}

/** Of what is between `from` and `size`; undefined if no whole entry is in it. */
async function findEndIn(file: FileHandle, from: number, size: number): Promise<JournalEnd | undefined> {
  const tail = Buffer.alloc(size - from);
  for (let at = 0; at < tail.length;) {
    const { bytesRead } = await file.read(tail, at, tail.length - at, from + at);
    if (bytesRead === 0) break;
    at += bytesRead;
  }
  let end = tail.lastIndexOf(0x0a) + 1;
  while (end > 0) {
    const begin = end < 2 ? 0 : tail.lastIndexOf(0x0a, end - 2) + 1;
    const found = readLine(tail.toString("utf8", begin, end));
    if (found) return { ...found, end: from + end };
    // Whole, and no entry: zeros that a file system left after a loss of power.
    end = begin;
  }
  return undefined;
}

function readLine(line: string): Omit<JournalEnd, "end"> | undefined {
  try {
    const { seq, workspace } = JSON.parse(line) as { seq?: unknown; workspace?: unknown };
    if (!Number.isSafeInteger(seq)) return undefined;
    return { last: seq as number, workspace: typeof workspace === "string" ? workspace : undefined };
  } catch {
    return undefined;
  }
}
