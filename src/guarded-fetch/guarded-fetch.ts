// fetch() for URLs that strangers chose. It connects to public addresses only, checked when it connects and again at every
// redirect; it waits, reads and unpacks no more than it was told. One connection for each hop, closed afterwards: nothing
// is kept that a later request could use.
import { Readable } from "node:stream";
import { Client, errors } from "undici";
import { FetchFailed, FetchRefused, OptionInvalid } from "../errors.ts";
import { type GuardedAnswer, makeAnswer } from "./answer.ts";
import { checkUrl } from "./check-url.ts";
import { makeConnect, type Resolve, resolveName } from "./connect.ts";
import { type GuardedFetchOptions, type Limits, readOptions } from "./options.ts";

/** What may be said about one request. */
export interface GuardedRequest {
  method?: "GET" | "HEAD" | "POST" | "PUT" | "PATCH" | "DELETE";
  headers?: Record<string, string>;
  /** A stream cannot be sent a second time, so it is not sent on by a redirect that asks for that. */
  body?: string | Uint8Array | AsyncIterable<Uint8Array>;
  signal?: AbortSignal;
}

/** What `makeGuardedFetch` gives. */
export type GuardedFetch = (url: string | URL, request?: GuardedRequest) => Promise<GuardedAnswer>;

/**
 * A fetch for URLs that strangers chose: public addresses only, also after redirects, with caps on time and bytes.
 */
export function makeGuardedFetch(options: GuardedFetchOptions = {}): GuardedFetch {
  return makeFetch(readOptions(options), resolveName);
}

/** What must not be said twice, or is ours to say. */
const OWN_HEADERS = new Set(["host", "connection", "transfer-encoding", "upgrade", "accept-encoding"]);
const SECRET_HEADERS = ["authorization", "cookie", "proxy-authorization"];
const REDIRECTS = new Set([301, 302, 303, 307, 308]);

type Hop = { url: URL; method: string; headers: Record<string, string>; body: GuardedRequest["body"] };

export function makeFetch(limits: Limits, resolve: Resolve): GuardedFetch {
  const connect = makeConnect(limits, resolve);

  return async function guardedFetch(given, { method = "GET", headers = {}, body, signal } = {}) {
    signal?.throwIfAborted();
    let hop: Hop = { url: checkUrl(given, limits), method, headers: readHeaders(headers), body };
    const redirects: string[] = [];
    const deadline = AbortSignal.timeout(limits.timeoutMs);
    const over = signal ? AbortSignal.any([signal, deadline]) : deadline;
    for (;;) {
      const { url } = hop;
      const client = new Client(url.origin, {
        connect,
        pipelining: 0,
        maxHeaderSize: limits.maxHeaderBytes,
        headersTimeout: limits.headersTimeoutMs,
        bodyTimeout: limits.idleTimeoutMs,
      });
      const stop = (): void => void client.destroy(new Error("The time is over")).catch(() => {});
      const end = (): void => {
        over.removeEventListener("abort", stop);
        void client.destroy().catch(() => {});
      };
      over.addEventListener("abort", stop, { once: true });
      const asOwn = (error: unknown): unknown => {
        if (signal?.aborted) return signal.reason;
        return deadline.aborted ? tooSlow(url, limits.timeoutMs, error) : ownError(url, error);
      };
      try {
        over.throwIfAborted();
        const response = await client.request({
          method: hop.method,
          path: `${url.pathname}${url.search}`,
          headers: { "user-agent": limits.userAgent, ...hop.headers, "accept-encoding": "gzip, br" },
          body: toBody(hop.body),
        });
        // The body can end with an error before anybody reads it.
        response.body.on("error", () => {});
        const answered = asHeaders(response.headers);
        const location = answered.get("location");
        if (limits.maxRedirects > 0 && REDIRECTS.has(response.statusCode) && location !== null) {
          if (redirects.length >= limits.maxRedirects) {
            const message = `${String(given).slice(0, 200)} redirects more than ${limits.maxRedirects} times.`;
            throw new FetchRefused("redirect", message, "Ask for where it leads to.");
          }
          redirects.push(url.href);
          hop = nextHop(hop, response.statusCode, checkUrl(location, limits, url));
          end();
          continue;
        }
        const hasBody = hop.method !== "HEAD" && response.statusCode !== 204 && response.statusCode !== 304;
        const { statusCode: status, body: raw } = response;
        return makeAnswer({ url, status, headers: answered, redirects, raw, hasBody, end, asOwn }, limits);
      } catch (error) {
        end();
        throw asOwn(error);
      }
    }
  };
}

function toBody(body: GuardedRequest["body"]): string | Uint8Array | Readable | null {
  if (body === undefined || typeof body === "string" || body instanceof Uint8Array) return body ?? null;
  return Readable.from(body, { objectMode: false });
}

function readHeaders(given: Record<string, string>): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(given)) {
    const lower = name.toLowerCase();
    if (OWN_HEADERS.has(lower)) throw new OptionInvalid(`The header ${lower} cannot be set.`, "Leave it out.");
    if (!/^[\w!#$%&'*+.^`|~-]+$/.test(name) || !/^[\t\x20-\x7e\x80-\xff]*$/.test(value)) {
      throw new OptionInvalid(`The header ${JSON.stringify(name)} is not one.`, "Use one line of Latin letters.");
    }
    headers[lower] = value;
  }
  return headers;
}

function asHeaders(given: Record<string, string | string[] | undefined>): Headers {
  const headers = new Headers();
  for (const [name, value = []] of Object.entries(given)) {
    for (const one of typeof value === "string" ? [value] : value) {
      try {
        headers.append(name, one);
      } catch {
        // Not a header that can be passed on; nobody misses it.
      }
    }
  }
  return headers;
}

function nextHop({ url: from, method, headers, body }: Hop, status: number, url: URL): Hop {
  if (from.protocol === "https:" && url.protocol === "http:") {
    throw new FetchRefused("redirect", `${from.host} redirects from https to http.`, "Ask the other side for https.");
  }
  const kept = { ...headers };
  if (url.origin !== from.origin) for (const name of SECRET_HEADERS) delete kept[name];
  const becomesGet = status === 303 ? method !== "HEAD" : status < 303 && method === "POST";
  if (becomesGet) {
    for (const name of ["content-type", "content-length"]) delete kept[name];
    return { url, method: "GET", headers: kept, body: undefined };
  }
  if (body !== undefined && typeof body !== "string" && !(body instanceof Uint8Array)) {
    throw new FetchRefused(
      "redirect",
      `${from.host} redirects what cannot be sent twice.`,
      "Send it to where it goes.",
    );
  }
  return { url, method, headers: kept, body };
}

function tooSlow({ host }: URL, ms: number, cause: unknown): FetchFailed {
  return new FetchFailed("timeout", `${host} was not done within ${ms} ms.`, "Try again later, or give it longer.", {
    cause,
  });
}

function ownError({ host }: URL, error: unknown): unknown {
  if (error instanceof FetchRefused || error instanceof FetchFailed || error instanceof OptionInvalid) return error;
  const code = error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : "";
  if (code === "UND_ERR_HEADERS_OVERFLOW") {
    const hint = "Raise maxHeaderBytes if they are to be read.";
    return new FetchRefused("size", `${host} sent too many bytes of headers.`, hint, { cause: error });
  }
  if (/^UND_ERR_(CONNECT|HEADERS|BODY)_TIMEOUT$|^ETIMEDOUT$/.test(code)) {
    return new FetchFailed("timeout", `${host} was too slow.`, "Try again later, or give it longer.", { cause: error });
  }
  if (/^(ENOTFOUND|EAI_|ENODATA)/.test(code)) {
    return new FetchFailed("name", `The name ${host} was not found.`, "Check the name; try again later.", {
      cause: error,
    });
  }
  const detail = code === "" ? "" : ` (${code})`;
  const isHttp = !(
    error instanceof errors.HTTPParserError || error instanceof errors.ResponseContentLengthMismatchError
  );
  const reason = isHttp ? "connection" : "answer";
  const message =
    reason === "answer" ? `${host} did not answer in HTTP${detail}.` : `The connection to ${host} failed${detail}.`;
  return new FetchFailed(reason, message, "Try again later.", { cause: error });
}
