// Handler `http`: the update goes to an internal URL as it is, and the `{ text }` that comes back goes to the user.
// One time limit for everything, no redirects, and no more of the answer than can be sent.
import { request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";
import { Fatal, RetryAfter } from "holdfast";
import type { Answer, Bot, HandlerContext } from "../config/bot.ts";
import type { Update } from "../update.ts";
import { safeLookup } from "./http-address.ts";

const MAX_ANSWER_BYTES = 1_048_576;
/** What trying again cannot change. */
const HOPELESS = new Set([400, 413, 422]);

export async function callHttp(
  { slug, http }: Bot,
  update: Update,
  { attempt, signal }: HandlerContext,
): Promise<Answer> {
  const { url, timeoutMs, headers } = http!;
  // Kept until it is asked for below: Node 20 forgets a timeout that only any() knows of.
  const timeout = AbortSignal.timeout(timeoutMs);
  const within = AbortSignal.any([signal, timeout]);
  const body = JSON.stringify(update);
  try {
    const answer = await post(url, body, within, {
      ...headers,
      "content-type": "application/json",
      accept: "application/json",
      "x-telegram-bot": slug,
      // The same in every try: whoever answers can tell that it has seen this one.
      "idempotency-key": `${slug}:${update.update_id}`,
      "x-attempt": String(attempt),
    });
    return toAnswer(answer);
  } catch (error) {
    if (!timeout.aborted || signal.aborted) throw error;
    throw new Error(`${url.host} did not answer within ${timeoutMs} ms`, { cause: error });
  }
}

interface HttpAnswer {
  status: number;
  retryAfter: string | undefined;
  text: string;
}

function post(url: URL, body: string, signal: AbortSignal, headers: Record<string, string>): Promise<HttpAnswer> {
  const send = url.protocol === "https:" ? requestHttps : requestHttp;
  return new Promise((resolve, reject) => {
    const options = {
      method: "POST",
      signal,
      lookup: safeLookup,
      headers: { ...headers, "content-length": String(Buffer.byteLength(body)) },
    };
    const request = send(url, options, (response) => {
      const pieces: Buffer[] = [];
      let size = 0;
      response.on("data", (piece: Buffer) => {
        size += piece.length;
        pieces.push(piece);
        if (size > MAX_ANSWER_BYTES) request.destroy(new Fatal(`${url.host} answered with more than 1 MiB`));
      });
      response.on("error", reject);
      response.on("end", () => {
        const { statusCode: status = 0, headers: answered } = response;
        resolve({ status, retryAfter: answered["retry-after"], text: Buffer.concat(pieces).toString("utf8") });
      });
    });
    request.on("error", reject);
    request.end(body);
  });
}

function toAnswer({ status, retryAfter, text }: HttpAnswer): Answer {
  if (status >= 300 || status < 200) {
    const message = `The bot's service answered ${status}`;
    if (HOPELESS.has(status)) throw new Fatal(`${message}: ${text.slice(0, 200)}`);
    if ((status === 429 || status === 503) && /^\d{1,5}$/.test(retryAfter ?? "")) {
      throw new RetryAfter(`${Number(retryAfter)}s`, message);
    }
    throw new Error(`${message}: ${text.slice(0, 200)}`);
  }
  if (text.trim() === "") return {};
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new Error(`The bot's service answered with something that is not JSON: ${text.slice(0, 200)}`);
  }
  const said: unknown = value !== null && typeof value === "object" && "text" in value ? value.text : undefined;
  if (said === undefined || said === null) return {};
  if (typeof said !== "string") throw new Error('The bot\'s service answered with a "text" that is no text');
  return { text: said };
}
