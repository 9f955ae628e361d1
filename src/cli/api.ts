// The server's HTTP API, for commands that talk to one. Inputs and answers have the types of the contracts; every
// refusal becomes a Problem with the exit code it stands for.
import type { OutputOf } from "../http/contract.ts";
import type { CONTRACTS } from "../http/contracts.ts";
import type { NewJobBody } from "../http/contracts/jobs.ts";
import type { NewTokenBody } from "../http/contracts/tokens.ts";
import type { ErrorBody } from "../http/errors.ts";
import type { Env } from "./env.ts";
import { EXIT } from "./exit-codes.ts";
import { Problem } from "./problem.ts";

type Output<Name extends keyof typeof CONTRACTS> = OutputOf<(typeof CONTRACTS)[Name]>;

/** What is undefined is not sent. */
type Query = Record<string, string | undefined>;

export interface Api {
  readonly url: string;
  enqueue(body: NewJobBody): Promise<Output<"enqueueJob">>;
  list(query: Query): Promise<Output<"listJobs">>;
  read(id: string): Promise<Output<"readJob">>;
  cancel(id: string): Promise<Output<"cancelJob">>;
  retry(id: string): Promise<Output<"retryJob">>;
  discard(id: string): Promise<Output<"discardJob">>;
  listQueues(): Promise<Output<"listQueues">>;
  pauseQueue(queue: string): Promise<Output<"pauseQueue">>;
  resumeQueue(queue: string): Promise<Output<"resumeQueue">>;
  listWorkers(): Promise<Output<"listWorkers">>;
  choreHistory(query: Query): Promise<Output<"choreHistory">>;
  previewChores(query: Query): Promise<Output<"previewChores">>;
  runChores(query: Query): Promise<Output<"runChores">>;
  createToken(body: NewTokenBody): Promise<Output<"createToken">>;
  listTokens(): Promise<Output<"listTokens">>;
  revokeToken(id: string): Promise<Output<"revokeToken">>;
}

const ANSWER_WITHIN_MS = 30_000;

/** --url, HOLDFAST_URL, or the address that `holdfast dev` has in the same environment. */
export function serverUrl(flag: string | undefined, env: Env): string {
  if (flag !== undefined) return flag;
  if (env.url) return env.url.value;
  return `http://127.0.0.1:${env.port?.value ?? 7070}`;
}

export function makeApi(url: string, token: string | undefined): Api {
  async function call<Answer>(method: "GET" | "POST", path: string, body?: unknown): Promise<Answer> {
    const response = await reach(method, path, body);
    const text = await response.text().catch(() => "");
    const answer = parseAnswer(text);
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- what a server of ours answers is what the contract says
    if (response.ok && answer !== undefined) return answer as Answer;
    throw refusal(url, response.status, answer);
  }

  async function reach(method: string, path: string, body: unknown): Promise<Response> {
    const headers: Record<string, string> = { accept: "application/json" };
    if (token !== undefined) headers["authorization"] = `Bearer ${token}`;
    if (body !== undefined) headers["content-type"] = "application/json";
    try {
      return await fetch(`${url}${path}`, {
        method,
        headers,
        body: body === undefined ? null : JSON.stringify(body),
        // A redirect would carry the token elsewhere.
        redirect: "error",
        signal: AbortSignal.timeout(ANSWER_WITHIN_MS),
      });
    } catch (error) {
      throw new Unanswered(url, error);
    }
  }

  const act = (verb: string) => (id: string) => call<never>("POST", `/api/v1/jobs/${encodeURIComponent(id)}/${verb}`);
  return {
    url,
    enqueue: (body) => call("POST", "/api/v1/jobs", body),
    list: (query) => call("GET", `/api/v1/jobs${asSearch(query)}`),
    read: (id) => call("GET", `/api/v1/jobs/${encodeURIComponent(id)}`),
    cancel: act("cancel"),
    retry: act("retry"),
    discard: act("discard"),
    listQueues: () => call("GET", "/api/v1/queues"),
    pauseQueue: (queue) => call("POST", `/api/v1/queues/${encodeURIComponent(queue)}/pause`),
    resumeQueue: (queue) => call("POST", `/api/v1/queues/${encodeURIComponent(queue)}/resume`),
    listWorkers: () => call("GET", "/api/v1/workers"),
    choreHistory: (query) => call("GET", `/api/v1/janitor/history${asSearch(query)}`),
    previewChores: (query) => call("GET", `/api/v1/janitor/preview${asSearch(query)}`),
    runChores: (query) => call("POST", `/api/v1/janitor/run${asSearch(query)}`),
    createToken: (body) => call("POST", "/api/v1/tokens", body),
    listTokens: () => call("GET", "/api/v1/tokens"),
    revokeToken: (id) => call("POST", `/api/v1/tokens/${encodeURIComponent(id)}/revoke`),
  };
}

function asSearch(query: Query): string {
  const given = Object.entries(query).filter((entry): entry is [string, string] => entry[1] !== undefined);
  return given.length === 0 ? "" : `?${new URLSearchParams(given).toString()}`;
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

export function refusal(url: string, status: number, answer: unknown): Problem {
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

export function parseAnswer(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
