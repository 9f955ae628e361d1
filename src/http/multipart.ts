// multipart/form-data as it arrives: one part after the other, each a stream that is read before the next begins. Holds no
// more than one piece of the body and a boundary. A body that ends before its last boundary is an error, never a shorter
// file.
import type { FormPart } from "../apps/define-app.ts";
import { Refusal } from "./errors.ts";

const MAX_HEADER_BYTES = 16_384;
const MAX_PREAMBLE_BYTES = 65_536;
const HEADER_END = Buffer.from("\r\n\r\n");

/** undefined: it is something else. */
export function boundaryOf(contentType: string | null): string | undefined {
  if (!/^multipart\/form-data\b/i.test(contentType ?? "")) return undefined;
  const [, quoted, plain] = /;\s*boundary=(?:"([^"]{1,200})"|([^\s;"]{1,200}))/i.exec(contentType!) ?? [];
  const boundary = quoted ?? plain;
  if (boundary === undefined) throw malformed("has no boundary");
  return boundary;
}

export async function* readParts(body: AsyncIterable<Uint8Array>, boundary: string): AsyncGenerator<FormPart, void> {
  // The first boundary may stand at the very beginning; every other one is at the beginning of a line.
  const source = new Source(body, Buffer.from("\r\n"));
  const delimiter = Buffer.from(`\r\n--${boundary}`);
  await source.skipTo(delimiter, MAX_PREAMBLE_BYTES);
  try {
    while (!(await isLast(source))) {
      const part = toPart((await source.take(HEADER_END, MAX_HEADER_BYTES)).toString("utf8"));
      let isRead = false;
      const content = source.until(delimiter, () => (isRead = true));
      yield { ...part, content };
      // Whoever took only a part of it is still followed by the next one.
      if (!isRead) for await (const _ of content);
    }
  } finally {
    await source.end();
  }
}

/** After a boundary: "--" ends the body, a line end begins a part. */
async function isLast(source: Source): Promise<boolean> {
  const two = await source.next(2);
  if (two === "--") return true;
  if (two === "\r\n") {
    source.putBack("\r\n");
    return false;
  }
  throw malformed("has a boundary that neither ends it nor begins a part");
}

function toPart(header: string): Omit<FormPart, "content"> {
  const lines = new Map<string, string>();
  for (const line of header.split("\r\n")) {
    const colon = line.indexOf(":");
    if (colon > 0) lines.set(line.slice(0, colon).trim().toLowerCase(), line.slice(colon + 1).trim());
  }
  const disposition = lines.get("content-disposition");
  if (disposition === undefined || !/^form-data\b/i.test(disposition)) {
    throw malformed("has a part without Content-Disposition: form-data");
  }
  return {
    field: parameter(disposition, "name") ?? "",
    filename: parameter(disposition, "filename"),
    type: lines.get("content-type") ?? "",
  };
}

/** As browsers write it: quotes and line ends inside are percent-encoded, some write backslashes. */
function parameter(header: string, name: string): string | undefined {
  const [, quoted, plain] = new RegExp(`;\\s*${name}=(?:"((?:\\\\.|[^"\\\\])*)"|([^\\s;"]+))`, "i").exec(header) ?? [];
  const value = quoted?.replace(/\\(["\\])/g, "$1") ?? plain;
  return value?.replace(/%22/g, '"').replace(/%0D/gi, "\r").replace(/%0A/gi, "\n");
}

/** A stream of pieces that can be searched. */
class Source {
  readonly #pieces: AsyncIterator<Uint8Array>;
  #held: Buffer;

  constructor(body: AsyncIterable<Uint8Array>, first: Buffer) {
    this.#pieces = body[Symbol.asyncIterator]();
    this.#held = first;
  }

  async #more(): Promise<void> {
    const { done, value } = await this.#pieces.next();
    if (done) throw malformed("ends before its last boundary");
    this.#held = this.#held.length === 0 ? Buffer.from(value) : Buffer.concat([this.#held, value]);
  }

  /** Everything before `mark`; it and the mark are used up. */
  async take(mark: Buffer, most: number): Promise<Buffer> {
    for (;;) {
      const at = this.#held.indexOf(mark);
      if (at > most || (at < 0 && this.#held.length > most + mark.length))
        throw malformed("has a part with a huge header");
      if (at >= 0) {
        const before = this.#held.subarray(0, at);
        this.#held = this.#held.subarray(at + mark.length);
        return before;
      }
      await this.#more();
    }
  }

  async skipTo(mark: Buffer, most: number): Promise<void> {
    let skipped = 0;
    for await (const piece of this.until(mark, () => {})) {
      skipped += piece.length;
      if (skipped > most) throw malformed("does not begin with its boundary");
    }
  }

  async next(count: number): Promise<string> {
    while (this.#held.length < count) await this.#more();
    const text = this.#held.toString("latin1", 0, count);
    this.#held = this.#held.subarray(count);
    return text;
  }

  putBack(text: string): void {
    this.#held = Buffer.concat([Buffer.from(text, "latin1"), this.#held]);
  }

  /** Pieces up to `mark`, which is used up. What could be the beginning of a mark waits for the next piece. */
  async *until(mark: Buffer, onEnd: () => void): AsyncGenerator<Buffer, void> {
    for (;;) {
      const at = this.#held.indexOf(mark);
      const end = at >= 0 ? at : this.#held.length - mark.length + 1;
      if (end > 0) {
        const piece = this.#held.subarray(0, end);
        this.#held = this.#held.subarray(end);
        yield piece;
      }
      if (at >= 0) {
        this.#held = this.#held.subarray(mark.length);
        onEnd();
        return;
      }
      await this.#more();
    }
  }

  async end(): Promise<void> {
    await this.#pieces.return?.();
  }
}

function malformed(what: string): Refusal {
  return new Refusal(
    "HOLDFAST_HTTP_REQUEST_UNREADABLE",
    `The multipart body ${what}.`,
    "Send the files as multipart/form-data, or one file as the body itself with ?name=.",
    { connection: "close" },
  );
}
