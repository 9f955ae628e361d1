// Fetches a page that somebody named: through the guarded fetch (public addresses only, redirects checked, caps on time and
// size), and with the answer turned into a page or into why there is none: final, passing, or "come back at …".
import { type Duration, durationMs } from "holdfast";
import {
  FetchFailed,
  FetchRefused,
  type GuardedAnswer,
  type GuardedFetch,
  makeGuardedFetch,
} from "holdfast/guarded-fetch";
import { LaterProblem, PageProblem, PassingProblem } from "../problems.ts";

export interface Page {
  /** Where it came from in the end. */
  url: string;
  status: number;
  contentType: string;
  bytes: Buffer;
}

export interface FetchPageOptions {
  /** Which content types are wanted. */
  types?: RegExp;
  maxBytes?: number;
  /** The status is the caller's business. */
  anyStatus?: boolean;
  /** Asked before a redirect is followed, with where it leads to; what it throws ends the fetch. */
  beforeRedirect?: (url: string, signal: AbortSignal) => Promise<void>;
  /** The address that led here by a redirect: what may not be asked from there is not asked. */
  from?: string;
}

export type FetchPage = (url: string, signal: AbortSignal, options?: FetchPageOptions) => Promise<Page>;

export interface FetcherOptions {
  timeout: Duration;
  maxPageBytes: number;
  userAgent: string;
  /** Origins with a numeric host that may be asked although they are not public: a sample site, a wiki inside. */
  allowOrigins(): readonly string[];
}

const PAGES = /^(text\/html|application\/xhtml\+xml|text\/plain)$/;
/** Who wants to be left alone for longer is not asked again. */
const LONGEST_WAIT_S = 6 * 3_600;
const FIRST_WAIT_S = 30;
const REDIRECTS = new Set([301, 302, 303, 307, 308]);
const MOST_REDIRECTS = 5;

export function makeFetchPage({ timeout, maxPageBytes, userAgent, allowOrigins }: FetcherOptions): FetchPage {
  const limits = {
    timeout,
    headersTimeout: timeout,
    idleTimeout: timeout,
    maxBodyBytes: maxPageBytes,
    userAgent,
    maxRedirects: 0,
  };
  const open = makeGuardedFetch(limits);
  const inside = new Map<string, GuardedFetch>();

  /** One that is allowed by its origin gets there, and nowhere else inside: not to another port of it, nor by a redirect. */
  function fetchFor(url: URL): GuardedFetch {
    if (!allowOrigins().includes(url.origin)) return open;
    const known = inside.get(url.origin);
    if (known) return known;
    const port = Number(url.port === "" ? (url.protocol === "https:" ? 443 : 80) : url.port);
    const made = makeGuardedFetch({ ...limits, allow: [url.hostname.replace(/^\[|\]$/g, "")], ports: [port] });
    inside.set(url.origin, made);
    return made;
  }

  /** Redirects are followed here, because each is asked about first; each is guarded as the first address is. */
  async function follow(
    start: URL,
    signal: AbortSignal,
    { beforeRedirect, from }: FetchPageOptions,
  ): Promise<GuardedAnswer> {
    const guardedFetch = fetchFor(from === undefined ? start : new URL(from));
    let url = start;
    for (let redirects = 0; ; redirects += 1) {
      const answer = await guardedFetch(url, {
        signal,
        headers: { accept: "text/html,application/xhtml+xml;q=0.9,text/plain;q=0.5", "accept-language": "*" },
      });
      const location = answer.headers.get("location");
      if (!REDIRECTS.has(answer.status) || location === null) return answer;
      answer.cancel();
      if (redirects >= MOST_REDIRECTS) {
        throw new PageProblem("bad-redirect", `${start.host} redirects more than ${MOST_REDIRECTS} times.`);
      }
      url = redirected(url, location);
      // What is no address of a page is refused by the guard.
      if (/^https?:$/.test(url.protocol)) await beforeRedirect?.(url.href, signal);
    }
  }

  return async (address, signal, options = {}) => {
    const { types = PAGES, maxBytes = maxPageBytes, anyStatus = false } = options;
    const url = new URL(address);
    const late = new AbortController();
    const timer = setTimeout(
      () => late.abort(new PassingProblem("timeout", `${url.host} was not done within ${timeout}.`)),
      durationMs("fetchTimeout", timeout),
    );
    try {
      const answer = await follow(url, AbortSignal.any([signal, late.signal]), options);
      const { status } = answer;
      const contentType = answer.headers.get("content-type") ?? "text/html";
      if (!anyStatus && (status < 200 || status > 299)) {
        answer.cancel();
        throw statusProblem(answer);
      }
      const [type = ""] = contentType.split(";");
      if (!types.test(type.trim().toLowerCase())) {
        answer.cancel();
        throw new PageProblem("not-a-page", `${type.trim() || "Something without a type"} is not a web page.`);
      }
      return { url: answer.url, status, contentType, bytes: await readAll(answer, maxBytes) };
    } catch (error) {
      throw asProblem(error);
    } finally {
      clearTimeout(timer);
    }
  };
}

function redirected(from: URL, location: string): URL {
  if (!URL.canParse(location, from.href)) {
    throw new PageProblem("bad-redirect", `${from.host} redirects to what is no address.`);
  }
  const url = new URL(location, from);
  // A fragment stays in the browser.
  url.hash = "";
  if (from.protocol === "https:" && url.protocol === "http:") {
    throw new PageProblem("bad-redirect", `${from.host} redirects from https to http.`);
  }
  return url;
}

async function readAll(answer: GuardedAnswer, maxBytes: number): Promise<Buffer> {
  const pieces: Uint8Array[] = [];
  let size = 0;
  for await (const piece of answer.body) {
    size += piece.byteLength;
    if (size > maxBytes) {
      answer.cancel();
      throw new PageProblem("too-large", `The page has more than ${maxBytes} bytes.`);
    }
    pieces.push(piece);
  }
  return Buffer.concat(pieces);
}

function statusProblem({ status, headers, url }: GuardedAnswer): Error {
  const { host } = new URL(url);
  if (status === 404) return new PageProblem("not-found", `${host} has no such page (404).`);
  if (status === 410) return new PageProblem("gone", `${host} says that the page is gone (410).`);
  if (status === 429 || (status === 503 && headers.has("retry-after"))) {
    const asked = retryAfter(headers.get("retry-after")) ?? FIRST_WAIT_S;
    if (asked > LONGEST_WAIT_S) {
      return new PageProblem(
        "too-many-requests",
        `${host} wants to be left alone for ${Math.round(asked / 3_600)} hours (${status}).`,
      );
    }
    return new LaterProblem("too-many-requests", asked, `${host} asks to come back in ${asked} s (${status}).`);
  }
  if (status === 408 || status === 425 || status >= 500) {
    return new PassingProblem("site-down", `${host} could not answer (${status}).`);
  }
  if (status === 401 || status === 402 || status === 403 || status === 451) {
    return new PageProblem("forbidden", `${host} does not show this page to everybody (${status}).`);
  }
  return new PageProblem("refused-by-site", `${host} refused (${status}).`);
}

/** Seconds, from either form. */
export function retryAfter(value: string | null, now = Date.now()): number | undefined {
  if (value === null) return undefined;
  if (/^\d{1,9}$/.test(value.trim())) return Math.max(1, Number(value));
  // JavaScript takes many a number for a date.
  const at = /^[a-z]{3}/i.test(value.trim()) ? Date.parse(value) : Number.NaN;
  return Number.isNaN(at) ? undefined : Math.max(1, Math.ceil((at - now) / 1_000));
}

function asProblem(error: unknown): unknown {
  if (error instanceof FetchRefused) {
    const code = (
      {
        url: "private-address",
        address: "private-address",
        redirect: "bad-redirect",
        size: "too-large",
        encoding: "unreadable",
      } as const
    )[error.reason];
    return new PageProblem(code, error.message, { cause: error });
  }
  if (error instanceof FetchFailed) {
    const code = (
      { timeout: "timeout", name: "unknown-host", connection: "unreachable", answer: "unreadable" } as const
    )[error.reason];
    return new PassingProblem(code, error.message, { cause: error });
  }
  return error;
}
