// The server's HTTP API, for commands that talk to one. Inputs and answers have the types of the contracts.
import type { OutputOf } from "../http/contract.ts";
import type { CONTRACTS } from "../http/contracts.ts";
import type { NewActionBody } from "../http/contracts/actions.ts";
import type { NewJobBody } from "../http/contracts/jobs.ts";
import type { NewTokenBody } from "../http/contracts/tokens.ts";
import { ANSWER_WITHIN_MS, makeRequests, type Query, withQuery } from "./requests.ts";

type Output<Name extends keyof typeof CONTRACTS> = OutputOf<(typeof CONTRACTS)[Name]>;

export interface Api {
  readonly url: string;
  enqueue(body: NewJobBody): Promise<Output<"enqueueJob">>;
  list(query: Query): Promise<Output<"listJobs">>;
  read(id: string): Promise<Output<"readJob">>;
  cancel(id: string): Promise<Output<"cancelJob">>;
  release(id: string): Promise<Output<"releaseJob">>;
  retry(id: string): Promise<Output<"retryJob">>;
  discard(id: string): Promise<Output<"discardJob">>;
  listKinds(): Promise<Output<"listKinds">>;
  listQueues(): Promise<Output<"listQueues">>;
  pauseQueue(queue: string): Promise<Output<"pauseQueue">>;
  resumeQueue(queue: string): Promise<Output<"resumeQueue">>;
  readStats(query: Query): Promise<Output<"readStats">>;
  listWorkers(): Promise<Output<"listWorkers">>;
  drainWorker(id: string): Promise<Output<"drainWorker">>;
  stopWorker(id: string): Promise<Output<"stopWorker">>;
  resumeWorker(id: string): Promise<Output<"resumeWorker">>;
  choreHistory(query: Query): Promise<Output<"choreHistory">>;
  previewChores(query: Query): Promise<Output<"previewChores">>;
  runChores(query: Query): Promise<Output<"runChores">>;
  examine(): Promise<Output<"examine">>;
  makeRepair(repair: string): Promise<Output<"makeRepair">>;
  countJobs(query: Query): Promise<Output<"countJobs">>;
  listErrors(query: Query): Promise<Output<"listErrorGroups">>;
  listDead(query: Query): Promise<Output<"listDead">>;
  startAction(body: NewActionBody): Promise<Output<"startAction">>;
  listActions(query: Query): Promise<Output<"listActions">>;
  readAction(id: string): Promise<Output<"readAction">>;
  cancelAction(id: string): Promise<Output<"cancelAction">>;
  createToken(body: NewTokenBody): Promise<Output<"createToken">>;
  listTokens(): Promise<Output<"listTokens">>;
  revokeToken(id: string): Promise<Output<"revokeToken">>;
}

export function makeApi(url: string, token: string | undefined): Api {
  const requests = makeRequests(url, token);
  const send = (method: "GET" | "POST", body?: unknown) => ({
    method,
    ...(body === undefined ? {} : { headers: { "content-type": "application/json" }, body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(ANSWER_WITHIN_MS),
  });
  const get = <Answer>(path: string, query: Query = {}) =>
    requests.call<Answer>(`/api/v1${withQuery(path, query)}`, send("GET"));
  const post = <Answer>(path: string, body?: unknown, query: Query = {}) =>
    requests.call<Answer>(`/api/v1${withQuery(path, query)}`, send("POST", body));
  const to = (path: string, name: string, verb = ""): string => `/${path}/${encodeURIComponent(name)}${verb}`;
  return {
    url,
    enqueue: (body) => post("/jobs", body),
    list: (query) => get("/jobs", query),
    read: (id) => get(to("jobs", id)),
    cancel: (id) => post(to("jobs", id, "/cancel")),
    release: (id) => post(to("jobs", id, "/release")),
    retry: (id) => post(to("jobs", id, "/retry")),
    discard: (id) => post(to("jobs", id, "/discard")),
    listKinds: () => get("/kinds"),
    listQueues: () => get("/queues"),
    pauseQueue: (queue) => post(to("queues", queue, "/pause")),
    resumeQueue: (queue) => post(to("queues", queue, "/resume")),
    readStats: (query) => get("/stats", query),
    listWorkers: () => get("/workers"),
    drainWorker: (id) => post(to("workers", id, "/drain")),
    stopWorker: (id) => post(to("workers", id, "/stop")),
    resumeWorker: (id) => post(to("workers", id, "/resume")),
    choreHistory: (query) => get("/janitor/history", query),
    previewChores: (query) => get("/janitor/preview", query),
    runChores: (query) => post("/janitor/run", undefined, query),
    examine: () => get("/doctor"),
    makeRepair: (repair) => post("/doctor/repair", { repair }),
    countJobs: (query) => get("/jobs/count", query),
    listErrors: (query) => get("/errors", query),
    listDead: (query) => get("/dead", query),
    startAction: (body) => post("/actions", body),
    listActions: (query) => get("/actions", query),
    readAction: (id) => get(to("actions", id)),
    cancelAction: (id) => post(to("actions", id, "/cancel")),
    createToken: (body) => post("/tokens", body),
    listTokens: () => get("/tokens"),
    revokeToken: (id) => post(to("tokens", id, "/revoke")),
  };
}
