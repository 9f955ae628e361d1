// Content on its way out: chunk by chunk, no faster than it is read. Read from its first byte to its last it is verified;
// whoever reads a part compares the hash of the whole. What is removed while somebody reads ends in an error, never in a
// shorter file.
import { createHash } from "node:crypto";
import { Readable } from "node:stream";
import { buffer, json, text } from "node:stream/consumers";
import { steadily } from "../db/steadily.ts";
import { ContentCorrupt, NotFound, OptionInvalid } from "../errors.ts";
import { holdParcel } from "../store/inbox/take.ts";
import { openParcel, readChunk } from "../store/inbox/read.ts";
import type { Parcel } from "../store/inbox/rows.ts";
import type { Store } from "../store/sql.ts";

/** Which bytes of a parcel. */
export interface Range {
  /** The first byte. Default 0. */
  start?: number;
  /** Behind the last byte, as in subarray(). Default: to the end. */
  end?: number;
}

/** A parcel's content, to be read as a stream or as a whole. Read from first byte to last it is verified. */
export interface OpenedContent {
  readonly parcel: Parcel;
  readonly start: number;
  readonly end: number;
  /** Once: a stream is read once. */
  stream(): Readable;
  bytes(): Promise<Buffer>;
  text(): Promise<string>;
  json(): Promise<unknown>;
}

export interface OpenInput {
  store: Store;
  recipient: string;
  id: string;
  range: Range;
  /** Its last byte was read. */
  onFetched(parcel: Parcel): Promise<void>;
  /** Reading it failed. */
  onFailed?(): void;
}

/** While somebody reads, the content stays; renewed well before it ends. */
const HOLD_MS = 60_000;
const RENEW_MS = 10_000;

export async function openContent(input: OpenInput): Promise<OpenedContent> {
  const { store, recipient, id, range } = input;
  const opened = await steadily(() => openParcel(store, recipient, id));
  if (!opened) throw unknownParcel(id);
  const { parcel, chunkBytes, endsSoon } = opened;
  const { start = 0, end = parcel.size } = range;
  if (!Number.isInteger(start) || !Number.isInteger(end) || start < 0 || start > end || end > parcel.size) {
    throw new OptionInvalid(
      `The range ${String(start)} to ${String(end)} is not in the ${parcel.size} bytes of parcel ${id}.`,
      "Give whole numbers with 0 <= start <= end <= size.",
    );
  }

  async function* read(): AsyncGenerator<Buffer> {
    const isWhole = start === 0 && end === parcel.size;
    const hash = isWhole ? createHash("sha256") : null;
    // A parcel that is read to the end before this never needs it.
    let heldAt = performance.now();
    if (endsSoon) await holdParcel(store, recipient, id, HOLD_MS);
    for (let at = start; at < end;) {
      const n = Math.floor(at / chunkBytes);
      const chunk = await steadily(() => readChunk(store, id, n));
      if (!chunk) throw removedMeanwhile(id);
      const piece = chunk.subarray(at - n * chunkBytes, Math.min(end - n * chunkBytes, chunk.length));
      if (piece.length === 0) throw corrupt(parcel);
      hash?.update(piece);
      at += piece.length;
      // The last bytes are handed out only when the whole is known to be right.
      if (at === end && hash && hash.digest("hex") !== parcel.sha256) throw corrupt(parcel);
      yield piece;
      if (performance.now() - heldAt < RENEW_MS) continue;
      await holdParcel(store, recipient, id, HOLD_MS);
      heldAt = performance.now();
    }
    if (end === parcel.size) await input.onFetched(parcel);
  }

  let stream: Readable | undefined;
  const once = (): Readable => {
    if (stream) throw new OptionInvalid(`The content of parcel ${id} was read before.`, "Open it again.");
    // One chunk waits at most: the reader sets the pace.
    stream = Readable.from(read(), { objectMode: false, highWaterMark: 1 });
    if (input.onFailed) stream.once("error", input.onFailed);
    return stream;
  };
  return {
    parcel,
    start,
    end,
    stream: once,
    bytes: () => buffer(once()),
    text: () => text(once()),
    json: () => json(once()),
  };
}

/** The same sentence whether it never existed, is somebody else's, or is over. */
export function unknownParcel(id: string): NotFound {
  return new NotFound(
    `This inbox has no parcel ${id} that can be read.`,
    "Check the id and the recipient; content goes when it expires, and a while after its ack.",
  );
}

function removedMeanwhile(id: string): NotFound {
  return new NotFound(
    `The content of parcel ${id} was removed while it was read.`,
    "Its time was over; ask the sender.",
  );
}

function corrupt({ id, sha256 }: Parcel): ContentCorrupt {
  return new ContentCorrupt(
    `The stored content of parcel ${id} does not have the SHA-256 ${sha256}.`,
    "Do not use what was read; ask the sender to put it again, and look after the database.",
  );
}
