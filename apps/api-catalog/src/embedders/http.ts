// One request to an embedder over HTTP: its answer as JSON, or an error that says what it said. The time it may take is the
// caller's signal; the operator chooses the address, so it may be inside.
import { RetryAfter } from "holdfast";

const MOST_BYTES = 256 * 1_048_576;
const LONGEST_WAIT_S = 3_600;

export class EmbedderFailed extends Error {
  override readonly name = "EmbedderFailed";
  readonly code = "CATALOG_EMBEDDER_FAILED";
}

export interface Post {
  name: string;
  url: string;
  headers?: Record<string, string>;
  body: unknown;
  signal: AbortSignal;
}

export async function postJson({ name, url, headers = {}, body, signal }: Post): Promise<Record<string, unknown>> {
  let response: Response;
  let text: string;
  try {
    response = await fetch(url, {
      method: "POST",
      headers: { "content-type": "application/json", accept: "application/json", ...headers },
      body: JSON.stringify(body),
      signal,
      redirect: "error",
    });
    text = await readText(response);
  } catch (error) {
    signal.throwIfAborted();
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause.message : String(error);
    throw new EmbedderFailed(`${name} cannot be reached at ${new URL(url).origin}: ${cause}`, { cause: error });
  }
  if (!response.ok) throw failed(name, response, text);
  try {
    const answer = JSON.parse(text) as unknown;
    if (answer !== null && typeof answer === "object") return answer as Record<string, unknown>;
  } catch {
    // Said below.
  }
  throw new EmbedderFailed(`${name} answered with something that is not JSON: ${text.slice(0, 200)}`);
}

async function readText(response: Response): Promise<string> {
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  for await (const piece of response.body ?? []) {
    bytes += (piece as Uint8Array).length;
    if (bytes > MOST_BYTES) throw new Error(`its answer is longer than ${MOST_BYTES} bytes`);
    pieces.push(piece as Uint8Array);
  }
  return Buffer.concat(pieces).toString("utf8");
}

function failed(name: string, { status, headers }: Response, text: string): Error {
  const message = `${name} answered ${status}: ${text.slice(0, 300)}`;
  const seconds = Number(headers.get("retry-after") ?? "");
  if ((status === 429 || status === 503) && seconds > 0 && seconds <= LONGEST_WAIT_S) {
    return new RetryAfter(`${Math.ceil(seconds)}s`, message);
  }
  return new EmbedderFailed(message);
}
