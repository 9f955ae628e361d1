// What can be put: bytes, text, a stream, or a JSON value. All of it becomes chunks of one size, one at a time; nobody
// asks a stream for more than the chunk that is being written.
import { OptionInvalid } from "../errors.ts";

/** A value that JSON has. */
export type Json = string | number | boolean | null | readonly Json[] | { readonly [name: string]: Json | undefined };

/** Anything that yields bytes: a Node stream, a web stream, an async generator. */
export type ContentStream = AsyncIterable<Uint8Array | string>;

/** What a parcel can be made of: bytes, text, a stream, a Blob, or a value that becomes JSON. */
export type Content = ContentStream | Blob | Uint8Array | ArrayBuffer | string | Json;

export interface ReadableContent {
  /** If it is known before reading. */
  size: number | null;
  /** What it is, unless the caller says so. */
  type: string;
  pieces(): AsyncIterable<Uint8Array | string> | Iterable<Uint8Array | string>;
}

export function readContent(content: unknown): ReadableContent {
  if (typeof content === "string") return ofText(content, "text/plain");
  if (content instanceof Uint8Array) return ofBytes(content);
  if (content instanceof ArrayBuffer) return ofBytes(new Uint8Array(content));
  if (content instanceof Blob) {
    return { size: content.size, type: content.type, pieces: () => content.stream() };
  }
  if (isStream(content)) return { size: null, type: "", pieces: () => content };
  return ofText(toJson(content), "application/json");
}

function ofBytes(bytes: Uint8Array): ReadableContent {
  return { size: bytes.byteLength, type: "", pieces: () => [bytes] };
}

function ofText(text: string, type: string): ReadableContent {
  return { ...ofBytes(Buffer.from(text)), type };
}

function isStream(content: unknown): content is ContentStream {
  return typeof content === "object" && content !== null && Symbol.asyncIterator in content;
}

function toJson(content: unknown): string {
  let json: string | undefined;
  try {
    json = JSON.stringify(content);
  } catch (error) {
    throw notContent(content, error);
  }
  if (json === undefined) throw notContent(content);
  return json;
}

function notContent(content: unknown, cause?: unknown): OptionInvalid {
  return new OptionInvalid(
    `The content is ${content === undefined ? "undefined" : `a ${typeof content} that is not JSON`}.`,
    "Give a stream, a Buffer, a Blob, a text or a JSON value.",
    { cause },
  );
}

/** Chunks of exactly `size` bytes; the last has the rest. Each is the receiver's own. */
export async function* chunksOf(content: ReadableContent, size: number): AsyncGenerator<Buffer> {
  let chunk = Buffer.allocUnsafeSlow(size);
  let filled = 0;
  for await (const piece of content.pieces()) {
    const bytes = typeof piece === "string" ? Buffer.from(piece) : piece;
    if (!(bytes instanceof Uint8Array)) {
      throw new OptionInvalid(
        "The stream gave something that is neither bytes nor text.",
        "Stream Buffers or strings.",
      );
    }
    for (let at = 0; at < bytes.byteLength;) {
      const taken = Math.min(size - filled, bytes.byteLength - at);
      chunk.set(bytes.subarray(at, at + taken), filled);
      filled += taken;
      at += taken;
      if (filled < size) continue;
      yield chunk;
      chunk = Buffer.allocUnsafeSlow(size);
      filled = 0;
    }
  }
  if (filled > 0) yield chunk.subarray(0, filled);
}
