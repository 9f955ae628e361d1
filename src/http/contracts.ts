// Every route of the API: where it is, who may call it, how its input is read, what it answers. The handler registers
// exactly these, docs/http.md lists exactly these (a test compares), and the CLI takes its types from here.
import type { Enqueued } from "../client/enqueue.ts";
import type { ListOptions } from "../client/jobs.ts";
import { OptionInvalid } from "../errors.ts";
import { JOB_STATES, type JobState } from "../job/states.ts";
import { refuseUnknown } from "../shared/refuse-unknown.ts";
import type { JobSummary, JobView } from "./job-view.ts";
import { readNewJob } from "./new-job.ts";

export interface Incoming {
  param(name: string): string;
  query: URLSearchParams;
  json(): Promise<unknown>;
}

export interface Contract<Input, Output> {
  method: "GET" | "POST";
  path: `/${string}`;
  /** `public` routes need no token; they say nothing about jobs. */
  access: "public" | "token";
  /** What an invalid value is answered with: 422 when it stood in the body, 400 when in the URL. */
  invalidStatus: 400 | 422;
  read(incoming: Incoming): Input | Promise<Input>;
  /** Never there: it carries the type. */
  output?: Output;
}

export type OutputOf<C> = C extends Contract<unknown, infer Output> ? Output : never;

const answering =
  <Output>() =>
  <Input>(contract: Contract<Input, Output>): Contract<Input, Output> =>
    contract;

const onUrl = { access: "token", invalidStatus: 400 } as const;
const open = { method: "GET", access: "public", invalidStatus: 400, read: (): void => {} } as const;
const readId = (incoming: Incoming): string => incoming.param("id").toLowerCase();

export interface JobPage {
  jobs: JobSummary[];
  /** The `cursor` of the following page. */
  next: string | null;
}

export interface Health {
  status: "ok" | "stopping" | "unavailable";
  tier: "embedded" | "server";
  /** How long the database took to answer; null when it did not. */
  databaseMs: number | null;
}

export const CONTRACTS = {
  enqueueJob: answering<Enqueued>()({
    method: "POST",
    path: "/api/v1/jobs",
    access: "token",
    invalidStatus: 422,
    read: async (incoming) => readNewJob(await incoming.json()),
  }),
  listJobs: answering<JobPage>()({ ...onUrl, method: "GET", path: "/api/v1/jobs", read: readFilter }),
  readJob: answering<JobView>()({ ...onUrl, method: "GET", path: "/api/v1/jobs/:id", read: readId }),
  cancelJob: answering<{ id: string; state: JobState; cancelRequested: boolean }>()({
    ...onUrl,
    method: "POST",
    path: "/api/v1/jobs/:id/cancel",
    read: readId,
  }),
  retryJob: answering<{ id: string; state: JobState }>()({
    ...onUrl,
    method: "POST",
    path: "/api/v1/jobs/:id/retry",
    read: readId,
  }),
  discardJob: answering<{ id: string; state: JobState; discarded: boolean }>()({
    ...onUrl,
    method: "POST",
    path: "/api/v1/jobs/:id/discard",
    read: readId,
  }),
  live: answering<{ status: "ok" }>()({ ...open, path: "/livez" }),
  ready: answering<Health>()({ ...open, path: "/readyz" }),
  health: answering<Health>()({ ...open, path: "/healthz" }),
};

export type Contracts = typeof CONTRACTS;

const FILTERS = ["state", "kind", "queue", "limit", "cursor"];

function readFilter({ query }: Incoming): ListOptions {
  const given = Object.fromEntries(query);
  refuseUnknown("The query", given, FILTERS, "parameter");
  const twice = FILTERS.find((name) => query.getAll(name).length > 1);
  if (twice !== undefined) {
    const hint = twice === "state" ? "Write several states with commas: state=dead,pending." : "Give it once.";
    throw new OptionInvalid(`The query has ${twice} more than once.`, hint);
  }
  const { state, kind, queue, limit, cursor } = given;
  const filter: ListOptions = {};
  // `?state=&kind=mail.send`: an empty parameter is one that was not given.
  if (state) filter.state = state.split(",").map(toState);
  if (kind) filter.kind = kind;
  if (queue) filter.queue = queue;
  if (limit) filter.limit = /^\d+$/.test(limit) ? Number(limit) : Number.NaN;
  if (cursor) filter.cursor = cursor.toLowerCase();
  if (Number.isNaN(filter.limit)) throw new OptionInvalid(`limit is ${JSON.stringify(limit)}.`, "Give a whole number.");
  return filter;
}

function toState(text: string): JobState {
  const state = JOB_STATES.find((known) => known === text);
  if (state !== undefined) return state;
  throw new OptionInvalid(`state is ${JSON.stringify(text)}.`, `Give one of ${JOB_STATES.join(", ")}.`);
}
