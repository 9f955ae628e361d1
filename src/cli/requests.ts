// Requests to a running server: with its token, never redirected, and every refusal a Problem with the exit code that it
// stands for.
import type { ErrorBody } from "../http/errors.ts";
import { eitherSignal } from "../shared/either-signal.ts";
import { EXIT } from "./exit-codes.ts";
import { Problem } from "./problem.ts";

/** What is undefined is not sent. */
export type Query = Record<string, string | undefined>;
export type RequestOptions = RequestInit & { duplex?: "half" };

export interface Requests {
  /** The JSON of a good answer. */
  call<Answer>(path: string, options?: RequestOptions): Promise<Answer>;
  /** The bytes of a good answer as they come, from `start` on. */
  download(path: string, options?: { start?: number; signal?: AbortSignal | undefined }): AsyncGenerator<Uint8Array>;
}

export const ANSWER_WITHIN_MS = 30_000;
/** A download that is silent for so long has broken off. */
const SILENT_MS = 30_000;

export function makeRequests(url: string, token: string | undefined): Requests {
  /** The answer, whatever its status; throws Unanswered if there is none. */
  async function reach(path: string, options: RequestOptions = {}): Promise<Response> {
    const headers = new Headers(options.headers);
    if (!headers.has("accept")) headers.set("accept", "application/json");
    if (token !== undefined) headers.set("authorization", `Bearer ${token}`);
    try {
      // A redirect would carry the token elsewhere.
      return await fetch(`${url}${path}`, { ...options, headers, redirect: "error" });
    } catch (error) {
      throw new Unanswered(url, error);
    }
  }

  return {
    async call<Answer>(path: string, options: RequestOptions = {}) {
      const response = await reach(path, options);
      const text = await response.text().catch(() => "");
      const answer = parse(text);
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- what a server of ours answers is what the contract says
      if (response.ok && answer !== undefined) return answer as Answer;
      throw explainRefusal(url, response.status, answer);
    },
    async *download(path, { start = 0, signal } = {}) {
      const silence = new AbortController();
      const timer = setTimeout(() => silence.abort(new Error("The download fell silent.")), SILENT_MS);
      try {
        const response = await reach(path, {
          headers: start > 0 ? { range: `bytes=${start}-` } : {},
          signal: signal ? eitherSignal(silence.signal, signal) : silence.signal,
        });
        if (!response.ok) throw explainRefusal(url, response.status, parse(await response.text()));
        if (start > 0 && response.status !== 206) throw new Error("The server did not go on where it was asked to.");
        for await (const piece of response.body ?? []) {
          timer.refresh();
          yield piece as Uint8Array;
        }
      } finally {
        clearTimeout(timer);
      }
    },
  };
}

export function withQuery(path: string, query: Query): string {
  const given = Object.entries(query).filter((entry): entry is [string, string] => entry[1] !== undefined);
  return given.length === 0 ? path : `${path}?${new URLSearchParams(given).toString()}`;
}

/** Nobody is there. */
export class Unanswered extends Problem {
  constructor(url: string, cause: unknown) {
    const isSilent = cause instanceof Error && cause.name === "TimeoutError";
    super(
      isSilent ? `The server at ${url} did not answer within 30s.` : `No server answers at ${url}.`,
      "Start one with `npx holdfast dev`, or say where it is with --url or HOLDFAST_URL.",
      isSilent ? EXIT.temporary : EXIT.unreachable,
      { cause },
    );
  }
}

const EXIT_BY_STATUS: Record<number, number> = {
  400: EXIT.usage,
  404: EXIT.notFound,
  409: EXIT.conflict,
  413: EXIT.usage,
  416: EXIT.usage,
  422: EXIT.usage,
  503: EXIT.temporary,
  507: EXIT.temporary,
};

function explainRefusal(url: string, status: number, answer: unknown): Problem {
  const error = isErrorBody(answer) ? answer.error : undefined;
  if (!error) {
    const message = `What answers at ${url} is not a Holdfast server (status ${status}).`;
    return new Problem(message, "Check --url and HOLDFAST_URL.", EXIT.failed);
  }
  const hint =
    status === 401 ? "Set HOLDFAST_TOKEN to a token of that server; `holdfast token create` makes one." : error.hint;
  return new Problem(error.message, hint, EXIT_BY_STATUS[status] ?? EXIT.failed, { code: error.code });
}

function isErrorBody(answer: unknown): answer is ErrorBody {
  if (answer === null || typeof answer !== "object" || !("error" in answer)) return false;
  const { error } = answer;
  return error !== null && typeof error === "object" && "message" in error && "hint" in error && "code" in error;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
