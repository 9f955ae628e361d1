// A request's body as JSON, or a refusal that says what is wrong with it. Reads no more than a payload may have, and
// never lets an integer through that parsing would have rounded.
import { MAX_PAYLOAD_BYTES, refuseRoundedIntegers } from "../job/storable.ts";
import { Refusal } from "./errors.ts";

export const MAX_BODY_BYTES = MAX_PAYLOAD_BYTES;

export async function readJson(request: Request): Promise<unknown> {
  checkType(request.headers.get("content-type"));
  const text = decode(await readBytes(request));
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

async function readBytes(request: Request): Promise<Uint8Array> {
  const announced = Number(request.headers.get("content-length") ?? Number.NaN);
  if (announced > MAX_BODY_BYTES) throw tooLarge();
  const chunks: Uint8Array[] = [];
  let size = 0;
  try {
    for await (const chunk of request.body ?? []) {
      size += chunk.byteLength;
      // Leaving the loop cancels the stream.
      if (size > MAX_BODY_BYTES) throw tooLarge();
      chunks.push(chunk);
    }
  } catch (error) {
    throw error instanceof Refusal ? error : unreadable("The body ended before it was complete.");
  }
  return Buffer.concat(chunks, size);
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

function tooLarge(): Refusal {
  return new Refusal(
    "HOLDFAST_HTTP_BODY_TOO_LARGE",
    `The body is larger than ${MAX_BODY_BYTES} bytes.`,
    "Keep large content elsewhere and put a reference to it in the payload.",
    // What is left of the body is not read.
    { connection: "close" },
  );
}
