// A document that somebody sent becomes a list of operations, in a thread that has a time and a memory of its own: what
// exceeds them costs the thread and the upload, and nothing else. Few are read at a time, a few more wait, and the others are
// asked to come again: the memory of all threads is that of this machine.
import { createHash } from "node:crypto";
import { Worker } from "node:worker_threads";
import { Refused } from "../refused.ts";

export interface ParsedOperation {
  method: string;
  path: string;
  operationId: string | null;
  summary: string;
  description: string;
  tags: string[];
  /** Names taken apart: "repos list for org". */
  names: string;
  /** What is embedded. */
  content: string;
}

export interface ParsedDocument {
  format: string;
  title: string;
  version: string;
  operations: ParsedOperation[];
  /** What the schema of its format says against it. */
  problems: string[];
}

export interface ParseOptions {
  timeoutMs?: number;
  memoryMb?: number;
  mostOperations?: number;
}

type Answer = { document: ParsedDocument } | { unreadable: string };

const PROGRAM = new URL("./thread.mjs", import.meta.url);
const HINT = "Send an OpenAPI 3.0 or 3.1 or a Swagger 2.0 document, as JSON or YAML.";

const MOST_READ = 2;
const MOST_WAITING = 8;
let reading = 0;
const waiting: (() => void)[] = [];

export async function parseDocument(text: string, options: ParseOptions = {}): Promise<ParsedDocument> {
  if (reading >= MOST_READ) {
    if (waiting.length >= MOST_WAITING) throw busy();
    // Whoever ends hands over its place.
    await new Promise<void>((resolve) => waiting.push(resolve));
  } else {
    reading += 1;
  }
  try {
    return await parseInThread(text, options);
  } finally {
    const next = waiting.shift();
    if (next) next();
    else reading -= 1;
  }
}

async function parseInThread(
  text: string,
  { timeoutMs = 60_000, memoryMb = 768, mostOperations = 20_000 }: ParseOptions,
): Promise<ParsedDocument> {
  const worker = new Worker(PROGRAM, {
    workerData: { text, mostOperations },
    resourceLimits: { maxOldGenerationSizeMb: memoryMb },
  });
  let timer: NodeJS.Timeout | undefined;
  try {
    const answer = await new Promise<Answer>((resolve, reject) => {
      timer = setTimeout(() => {
        reject(tooMuch(`It took longer than ${timeoutMs} ms to read the document.`));
      }, timeoutMs);
      worker.once("message", resolve);
      worker.once("error", (error: Error & { code?: string }) => {
        const isMemory = error.code === "ERR_WORKER_OUT_OF_MEMORY";
        reject(isMemory ? tooMuch(`Reading the document needs more than ${memoryMb} MB.`) : error);
      });
      worker.once("exit", () => reject(tooMuch("The document could not be read.")));
    });
    if ("unreadable" in answer) throw new Refused(422, "DOCUMENT_UNREADABLE", answer.unreadable, HINT);
    return answer.document;
  } finally {
    clearTimeout(timer);
    await worker.terminate();
  }
}

const tooMuch = (message: string): Refused =>
  new Refused(422, "DOCUMENT_TOO_MUCH", message, "Split it, or take out what is repeated.");

const busy = (): Refused =>
  new Refused(503, "BUSY", "Too many documents are being read at the same time.", "Send it again in a moment.");

/** What an operation is called inside its spec. */
export const operationKey = ({ method, path }: ParsedOperation): string => `${method} ${path}`;

export const hashOf = (text: string): string => createHash("sha256").update(text).digest("hex");
