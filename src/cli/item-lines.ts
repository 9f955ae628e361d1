// Items from a file or from stdin, as lines for the server: one JSON value on each, or plain texts that become a field of an
// object each. A list in a .json file is one too. No more than a piece is held.
import { createReadStream } from "node:fs";
import { readFile, stat } from "node:fs/promises";
import { createInterface } from "node:readline";
import { EXIT } from "./exit-codes.ts";
import { Problem } from "./problem.ts";

/** The list in a .json file, or undefined: it is lines. */
export async function readList(path: string): Promise<unknown[] | undefined> {
  if (!path.endsWith(".json")) return undefined;
  await checkFile(path);
  let value: unknown;
  try {
    value = JSON.parse(await readFile(path, "utf8"));
  } catch (error) {
    throw new Problem(`${path} is not JSON.`, "Give a JSON list, or lines in a .ndjson file.", EXIT.usage, {
      cause: error,
    });
  }
  if (Array.isArray(value)) return value;
  throw new Problem(`${path} is not a list.`, "Give a JSON list of items.", EXIT.usage);
}

/** `field`: each line is a plain text. */
export async function openLines(path: string, field: string | undefined): Promise<AsyncIterable<Uint8Array>> {
  if (path !== "-") await checkFile(path);
  const source = path === "-" ? process.stdin : createReadStream(path);
  if (field === undefined) return source as AsyncIterable<Uint8Array>;
  return wrapped(source, field);
}

async function* wrapped(input: NodeJS.ReadableStream, field: string): AsyncGenerator<Uint8Array> {
  // Made when it is read: lines that come before anybody waits for them would be lost.
  for await (const text of createInterface({ input, crlfDelay: Infinity })) {
    if (text.trim() !== "") yield Buffer.from(`${JSON.stringify({ [field]: text.trim() })}\n`);
  }
}

async function checkFile(path: string): Promise<void> {
  const found = await stat(path).catch((error: unknown) => {
    throw new Problem(`The file ${path} cannot be read.`, "Check the path.", EXIT.usage, { cause: error });
  });
  if (!found.isFile()) throw new Problem(`${path} is not a file.`, "Give a file, or - for stdin.", EXIT.usage);
}
