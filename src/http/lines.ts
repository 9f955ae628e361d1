// A body of lines, each a JSON value (NDJSON), as a stream: no more than one line is held, however long the body is. A line
// that cannot be read is named by its number.
import { MAX_PAYLOAD_BYTES, refuseRoundedIntegers } from "../job/storable.ts";
import { streamBody } from "./body.ts";
import { Refusal } from "./errors.ts";

const LINES = /^application\/(?:x-)?(?:ndjson|jsonl|jsonlines) *(?:; *charset="?utf-?8"? *)?$/i;
const NEWLINE = 0x0a;

export const isLines = (request: Request): boolean => LINES.test(request.headers.get("content-type") ?? "");

export async function* readLines(request: Request): AsyncGenerator<unknown, void> {
  let rest: Uint8Array[] = [];
  let held = 0;
  let number = 0;
  for await (const piece of streamBody(request, { maxBytes: Infinity })) {
    let from = 0;
    for (let end = piece.indexOf(NEWLINE); end !== -1; end = piece.indexOf(NEWLINE, from)) {
      number += 1;
      const value = parse(Buffer.concat([...rest, piece.subarray(from, end)]), number);
      if (value !== undefined) yield value;
      rest = [];
      held = 0;
      from = end + 1;
    }
    held += piece.length - from;
    if (held > MAX_PAYLOAD_BYTES) throw tooLong(number + 1);
    if (from < piece.length) rest.push(piece.subarray(from));
  }
  const last = parse(Buffer.concat(rest), number + 1);
  if (last !== undefined) yield last;
}

/** Undefined: there is nothing in it. */
function parse(line: Uint8Array, number: number): unknown {
  if (line.length > MAX_PAYLOAD_BYTES) throw tooLong(number);
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(line);
  } catch {
    throw unreadable(`Line ${number} is not UTF-8.`);
  }
  if (text.trim() === "") return undefined;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw unreadable(
      `Line ${number} is not JSON: ${error instanceof Error ? error.message.slice(0, 200) : "unreadable"}.`,
    );
  }
  refuseRoundedIntegers(`Line ${number}`, text);
  return value;
}

function unreadable(message: string): Refusal {
  return new Refusal("HOLDFAST_HTTP_REQUEST_UNREADABLE", message, "Send one JSON value on each line, in UTF-8.", {
    connection: "close",
  });
}

function tooLong(number: number): Refusal {
  return new Refusal(
    "HOLDFAST_HTTP_BODY_TOO_LARGE",
    `Line ${number} is longer than ${MAX_PAYLOAD_BYTES} bytes.`,
    "Keep large content elsewhere and put a reference to it in the item.",
    { connection: "close" },
  );
}
