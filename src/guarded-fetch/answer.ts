// What came back: headers at once, the body as it is read. Decompressed here, so that both what comes and what becomes of
// it are counted while they flow; nothing is held beyond a piece.
import { Readable } from "node:stream";
import { createBrotliDecompress, createGunzip, createInflate } from "node:zlib";
import { FetchFailed, FetchRefused } from "../errors.ts";
import type { Limits } from "./options.ts";

/** An answer whose body is read under the caps. */
export interface GuardedAnswer {
  /** Where it came from, after redirects. */
  readonly url: string;
  readonly status: number;
  readonly headers: Headers;
  /** The URLs on the way, the first one first; empty if there was no redirect. */
  readonly redirects: readonly string[];
  /** Decompressed. To be read once, to its end or until `cancel()`; the time for it is running. */
  readonly body: AsyncIterable<Uint8Array>;
  bytes(): Promise<Buffer>;
  /** By the charset of the content type; UTF-8 if it says none, or one that nobody knows. */
  text(): Promise<string>;
  json(): Promise<unknown>;
  /** The body is not wanted: closes the connection. */
  cancel(): void;
}

export interface Received {
  url: URL;
  status: number;
  headers: Headers;
  redirects: readonly string[];
  raw: AsyncIterable<Uint8Array>;
  hasBody: boolean;
  /** Closes the connection. */
  end(): void;
  /** An error of the transport as one of ours. */
  asOwn(error: unknown): unknown;
}

const DECODERS: Record<string, () => NodeJS.ReadWriteStream> = {
  gzip: createGunzip,
  "x-gzip": createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
};
/** Small pages of much white space are honest. */
const RATIO_FROM = 1_048_576;

export function makeAnswer(received: Received, limits: Limits): GuardedAnswer {
  const { url, status, headers, redirects, end } = received;
  const encoding = readEncoding(received);
  const body = decoded(received, encoding, limits);
  async function bytes(): Promise<Buffer> {
    const pieces: Uint8Array[] = [];
    for await (const piece of body) pieces.push(piece);
    return Buffer.concat(pieces);
  }
  const text = async (): Promise<string> => decodeText(await bytes(), headers.get("content-type") ?? "");
  return {
    url: url.href,
    status,
    headers,
    redirects,
    body,
    bytes,
    text,
    cancel: end,
    async json() {
      const read = await text();
      try {
        return JSON.parse(read) as unknown;
      } catch (error) {
        throw new FetchFailed("answer", `${url.host} answered with something that is not JSON.`, NOT_OURS, {
          cause: error,
        });
      }
    },
  };
}

const NOT_OURS = "Look at what the other side sends.";

function readEncoding({ url, headers, hasBody }: Received): string | null {
  const said = (headers.get("content-encoding") ?? "").trim().toLowerCase();
  if (said === "" || said === "identity" || !hasBody) return null;
  // A chain of them is how a small body becomes an endless one.
  if (Object.hasOwn(DECODERS, said)) return said;
  throw new FetchRefused("encoding", `${url.host} answered in the encoding ${JSON.stringify(said)}.`, NOT_OURS);
}

async function* decoded(
  { url, raw, end, asOwn }: Received,
  encoding: string | null,
  { maxBodyBytes, maxRatio }: Limits,
): AsyncGenerator<Uint8Array> {
  let came = 0;
  let made = 0;
  const tooLarge = (what: string): FetchRefused =>
    new FetchRefused("size", `${url.host} sent ${what}.`, "Raise maxBodyBytes if that is to be read.");
  async function* counted(): AsyncGenerator<Uint8Array> {
    try {
      for await (const piece of raw) {
        came += piece.byteLength;
        if (came > maxBodyBytes) throw tooLarge(`more than ${maxBodyBytes} bytes`);
        yield piece;
      }
    } catch (error) {
      throw asOwn(error);
    }
  }
  try {
    if (encoding === null) return yield* counted();
    const source = Readable.from(counted(), { objectMode: false });
    const decoder = DECODERS[encoding]!();
    source.on("error", (error) => (decoder as unknown as Readable).destroy(error));
    try {
      for await (const piece of source.pipe(decoder) as unknown as AsyncIterable<Uint8Array>) {
        made += piece.byteLength;
        if (made > maxBodyBytes) throw tooLarge(`more than ${maxBodyBytes} bytes, decompressed`);
        if (made > RATIO_FROM && made > came * maxRatio) {
          throw tooLarge(`${came} bytes that become more than ${maxRatio} times as many`);
        }
        yield piece;
      }
    } catch (error) {
      if (error instanceof FetchRefused || error instanceof FetchFailed || !isZlib(error)) throw error;
      // An empty body is announced in an encoding, too.
      if (came === 0) return;
      throw new FetchFailed("answer", `${url.host} sent a body that is not ${encoding}.`, NOT_OURS, { cause: error });
    } finally {
      source.destroy();
    }
  } finally {
    end();
  }
}

function isZlib(error: unknown): boolean {
  return error instanceof Error && "code" in error && /^(Z_|ERR_)/.test(String(error.code));
}

function decodeText(bytes: Buffer, type: string): string {
  const charset = /;\s*charset\s*=\s*"?([\w.:-]+)/i.exec(type)?.[1] ?? "utf-8";
  try {
    return new TextDecoder(charset).decode(bytes);
  } catch {
    return new TextDecoder().decode(bytes);
  }
}
