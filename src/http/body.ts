// A request's body, as JSON or as a stream of bytes, or a refusal that says what is wrong with it. Reads no more than
// was asked for and waits for nobody for ever; never lets an integer through that parsing would have rounded.
import { MAX_PAYLOAD_BYTES, refuseRoundedIntegers } from "../job/storable.ts";
import { Refusal } from "./errors.ts";

const MAX_BODY_BYTES = MAX_PAYLOAD_BYTES;
const JSON_WITHIN_MS = 30_000;
const IDLE_MS = 10_000;

export async function readJson(request: Request, maxBytes = MAX_BODY_BYTES): Promise<unknown> {
  checkType(request.headers.get("content-type"));
  const text = decode(await readBytes(request, maxBytes));
  if (text.trim() === "") throw unreadable("The body is empty.");
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw unreadable(`The body is not JSON: ${error instanceof Error ? error.message.slice(0, 200) : "unreadable"}.`);
  }
  refuseRoundedIntegers("The body", text);
  return value;
}

function checkType(type: string | null): void {
  const match = /^application\/(?:[\w.-]+\+)?json *(?:; *charset="?([\w-]+)"? *)?$/i.exec(type ?? "");
  if (match && /^utf-?8$/i.test(match[1] ?? "utf-8")) return;
  throw new Refusal(
    "HOLDFAST_HTTP_TYPE_UNSUPPORTED",
    type === null ? "The request has no content type." : `The content type is ${JSON.stringify(type.slice(0, 100))}.`,
    "Send JSON in UTF-8, with the header Content-Type: application/json.",
  );
}

async function readBytes(request: Request, maxBytes: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of streamBody(request, { maxBytes, withinMs: JSON_WITHIN_MS })) {
    chunks.push(chunk);
    size += chunk.byteLength;
  }
  return Buffer.concat(chunks, size);
}

export interface StreamBodyOptions {
  maxBytes: number;
  /** The longest pause between two pieces. */
  idleMs?: number;
  /** The longest time for all of it. */
  withinMs?: number;
}

/** The body piece by piece: 413 after `maxBytes`, 408 when the sender is too slow, 400 when it breaks off. */
export async function* streamBody(request: Request, options: StreamBodyOptions): AsyncGenerator<Uint8Array, void> {
  const { maxBytes, idleMs = IDLE_MS, withinMs = Infinity } = options;
  const announced = Number(request.headers.get("content-length") ?? Number.NaN);
  if (announced > maxBytes) throw tooLarge(maxBytes);
  if (request.body === null) return;
  const reader = request.body.getReader();
  const endsAt = performance.now() + withinMs;
  let size = 0;
  let isDone = false;
  try {
    for (;;) {
      const left = Math.min(idleMs, endsAt - performance.now());
      const { done, value } = await within(reader.read(), left);
      isDone = done;
      if (value === undefined) return;
      size += value.byteLength;
      if (size > maxBytes) throw tooLarge(maxBytes);
      yield value;
    }
  } catch (error) {
    throw error instanceof Refusal ? error : unreadable("The body ended before it was complete.");
  } finally {
    // What is left of it is not wanted.
    if (!isDone) reader.cancel().catch(() => {});
  }
}

async function within<T>(reading: Promise<T>, ms: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const tooLate = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(tooSlow()), Math.max(0, ms));
  });
  reading.catch(() => {});
  try {
    return await Promise.race([reading, tooLate]);
  } finally {
    clearTimeout(timer);
  }
}

function decode(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw unreadable("The body is not UTF-8.");
  }
}

function unreadable(message: string): Refusal {
  return new Refusal("HOLDFAST_HTTP_REQUEST_UNREADABLE", message, "Send one JSON object, in UTF-8.");
}

function tooLarge(maxBytes: number): Refusal {
  return new Refusal(
    "HOLDFAST_HTTP_BODY_TOO_LARGE",
    `The body is larger than ${maxBytes} bytes.`,
    "Send less: keep large content elsewhere, and send a reference to it.",
    // What is left of the body is not read.
    { connection: "close" },
  );
}

function tooSlow(): Refusal {
  return new Refusal(
    "HOLDFAST_HTTP_BODY_TOO_SLOW",
    "The body did not arrive in time.",
    "Send it again, without pauses.",
    { connection: "close" },
  );
}
