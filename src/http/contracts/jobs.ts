// /api/v1/jobs and /api/v1/kinds. What only JSON can get wrong is checked here (shape, types, unknown fields); ranges
// and forms are checked by hf.enqueue(), once for every caller.
import { z } from "zod";
import type { ErrorRecord } from "../../job/outcome.ts";
import { JOB_STATES, JOB_STATUSES } from "../../job/states.ts";
import type { Duration } from "../../shared/duration.ts";
import { OptionInvalid } from "../../errors.ts";
import { contract } from "../contract.ts";
import { anyText, cursor, idParams, isoTime, textField, uuid, wholeNumber, words } from "../fields.ts";

/** A time without a zone would mean the server's. */
const INSTANT = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)$/i;

const numberField = (name: string, example: number, limits: { minimum: number; maximum: number }, about: string) =>
  z
    .number({ error: `Give a number: "${name}": ${example}.` })
    .nullish()
    .meta({ description: about, examples: [example], ...limits });

const KIND_HINT = { error: 'Give the name of a kind as text: "kind": "mail.send".' };
const INSTANT_HINT = { error: 'Give an ISO 8601 time with its zone: "runAt": "2030-01-31T08:00:00Z".' };

const newJob = z
  .strictObject({
    kind: z
      .string(KIND_HINT)
      .min(1, KIND_HINT)
      .meta({ description: "Which kind of job; the server must know it.", examples: ["mail.send"] }),
    payload: z
      .unknown()
      .optional()
      .meta({ description: "Any JSON. Checked against the kind's schema; null if it is left out." }),
    key: textField("key", "order-17", "One key is one job for the key's life, within the kind."),
    coalesce: textField("coalesce", "search-index", "One open job per key; a waiting one takes the newest payload."),
    group: textField("group", "customer-5", "Jobs of one group run one at a time, in order."),
    runAt: z
      .string({ error: 'Give a text: "runAt": "2030-01-31T08:00:00Z".' })
      .regex(INSTANT, INSTANT_HINT)
      .nullish()
      .meta({ description: "Not before this time: ISO 8601 with its zone.", examples: ["2030-01-31T08:00:00Z"] }),
    delay: textField("delay", "30s", "Not before this long; not together with runAt."),
    priority: numberField("priority", 10, { minimum: -100, maximum: 100 }, "Higher runs sooner."),
    queue: textField("queue", "default", "Instead of the kind's queue."),
    attempts: numberField("attempts", 5, { minimum: 1, maximum: 1000 }, "Instead of the kind's attempts."),
  })
  .meta({ id: "NewJob" });

/** The body of an enqueue. */
export type NewJobBody = z.input<typeof newJob>;

const enqueued = z
  .object({
    id: uuid,
    created: z.boolean().meta({ description: "False: the key was known, or it went into an open job." }),
    conflict: z.boolean().meta({ description: "Same key, other payload: the first one stays." }),
    coalesced: z.boolean(),
  })
  .meta({ id: "Enqueued" });

export const errorRecord: z.ZodType<ErrorRecord> = z
  .object({
    name: z.string(),
    message: z.string(),
    stack: z.string().exactOptional(),
    code: z.string().exactOptional(),
    fingerprint: z.string().exactOptional(),
    reason: z.enum(["crashed", "timeout", "invalid-payload", "fatal", "exhausted", "expired"]).exactOptional(),
    get cause() {
      return errorRecord.exactOptional();
    },
  })
  .meta({ id: "ErrorRecord" });

const jobSummary = z
  .object({
    id: uuid,
    kind: z.string(),
    queue: z.string(),
    state: z.enum(JOB_STATES),
    status: z
      .enum(JOB_STATUSES)
      .meta({ description: "What people want to know, derived from the state and the clock." }),
    attempt: z.int(),
    maxAttempts: z.int(),
    claimCount: z.int(),
    priority: z.int(),
    key: z.string().nullable(),
    group: z.string().nullable(),
    coalesce: z.string().nullable(),
    progress: z
      .object({ done: z.number(), total: z.number().nullable(), note: z.string().nullable(), at: z.string() })
      .nullable(),
    lastError: errorRecord.nullable(),
    createdAt: isoTime,
    runAt: isoTime,
    startedAt: isoTime.nullable(),
    finishedAt: isoTime.nullable(),
    cancelRequestedAt: isoTime.nullable(),
    leaseExpiresAt: isoTime.nullable().meta({ description: "Until when its run owns it." }),
  })
  .meta({ id: "JobSummary" });

const jobView = jobSummary
  .extend({
    payload: z.unknown(),
    result: z.unknown(),
    payloadText: z.string().meta({ description: "The payload as JSON text, with every digit of its numbers." }),
    resultText: z.string().nullable(),
    batchId: uuid.nullable().meta({ description: "The batch that it runs an item of." }),
    notes: z
      .array(
        z.object({
          sort: z.enum(["step", "chunks", "checkpoint", "generation"]),
          name: z.string(),
          text: z.string().meta({ description: "JSON, at most 10,000 characters of it." }),
          size: z.int(),
          writtenAt: isoTime,
        }),
      )
      .meta({
        description: "What its runs have finished so far, the last one first: the next run goes on from there.",
      }),
    attempts: z
      .array(
        z.object({
          attempt: z.int(),
          claimCount: z.int(),
          startedAt: isoTime.nullable(),
          failedAt: isoTime,
          durationMs: z.number().nullable(),
          outcome: z.string(),
          error: errorRecord.nullable(),
        }),
      )
      .meta({ description: "The failed ones, oldest first." }),
  })
  .meta({ id: "Job" });

/** A job in a list: without payload, result, notes and attempts. */
export type JobSummary = z.output<typeof jobSummary>;
/** Everything about a job, as its caller may see it. */
export type JobView = z.output<typeof jobView>;

const jobPage = z
  .object({ jobs: z.array(jobSummary), next: uuid.nullable().meta({ description: "The cursor of the next page." }) })
  .meta({ id: "JobPage" });

/** A page of a list of jobs. */
export type JobPage = z.output<typeof jobPage>;

/** What an item can come to besides error and cancelled. */
export const outcomes = z.record(
  z.string(),
  z.object({ countsAs: z.string().exactOptional(), warning: z.boolean().exactOptional() }),
);
const duration = (description: string) =>
  z
    .string()
    .transform((text) => text as Duration)
    .optional()
    .meta({ description, examples: ["5m"] });

const payloadValues = z
  .string()
  .transform((text) => toValues(text))
  .optional()
  .meta({ description: 'Values in the payload, as JSON: {"user.id": 42}.' });

function toValues(text: string): Record<string, string | number | boolean> {
  try {
    const values: unknown = JSON.parse(text);
    if (values !== null && typeof values === "object" && !Array.isArray(values)) {
      if (Object.values(values).every((value) => ["string", "number", "boolean"].includes(typeof value))) {
        return values as Record<string, string | number | boolean>;
      }
    }
  } catch {
    // Told below.
  }
  throw new OptionInvalid(`payload is ${JSON.stringify(text.slice(0, 100))}.`, 'Give JSON: payload={"user.id":42}.');
}

const filter = {
  state: words("state", JOB_STATES),
  status: words("status", JOB_STATUSES),
  kind: anyText("Only this kind."),
  queue: anyText("Only this queue."),
  key: anyText("Only this key."),
  group: anyText("Only this group."),
  error: anyText("Part of the last error's name or message, in any case."),
  fingerprint: anyText("What errors of one cause have in common."),
  leastAttempts: wholeNumber(0, 1_000_000, "At least so many attempts."),
  mostAttempts: wholeNumber(0, 1_000_000, "At most so many attempts."),
  olderThan: duration("Enqueued longer ago than this."),
  youngerThan: duration("Enqueued in this time."),
  payload: payloadValues,
};

const kindView = z
  .object({
    kind: z.string(),
    queue: z.string(),
    attempts: z.int(),
    leaseMs: z.int(),
    timeoutMs: z.int(),
    backoffMs: z.array(z.int()).meta({ description: "The pauses before its first tries again, at most ten." }),
    schema: z
      .record(z.string(), z.unknown())
      .nullable()
      .meta({ description: "The payload's, or one item's, JSON Schema, where the kind's schema can give one." }),
    batch: z
      .object({ concurrency: z.int(), outcomes })
      .nullable()
      .meta({ description: "Of a batch kind: batches are made of it, and no jobs." }),
  })
  .meta({ id: "Kind" });

export type KindView = z.output<typeof kindView>;

const act = { method: "POST", access: "operator", params: idParams } as const;

export const jobContracts = {
  enqueueJob: contract({
    method: "POST",
    path: "/api/v1/jobs",
    access: "operator",
    audited: false,
    summary: "Accept a job. The same key again is the same job.",
    body: newJob,
    output: enqueued,
    answers: { 201: "A job was created.", 200: "The key was known, or it went into an open job." },
  }),
  listJobs: contract({
    method: "GET",
    path: "/api/v1/jobs",
    access: "viewer",
    summary: "Jobs, newest first, page by page, without payloads.",
    query: z.strictObject({ ...filter, limit: wholeNumber(1, 500, "How many; 50 if not given."), cursor }),
    output: jobPage,
    answers: { 200: "A page. It may hold fewer than asked for, or none, and still have a next one." },
  }),
  countJobs: contract({
    method: "GET",
    path: "/api/v1/jobs/count",
    access: "viewer",
    summary: "How many jobs match, counted up to a bound.",
    query: z.strictObject(filter),
    output: z.object({ count: z.int(), more: z.boolean().meta({ description: "There may be more." }) }),
    answers: { 200: "The count." },
  }),
  readJob: contract({
    method: "GET",
    path: "/api/v1/jobs/:id",
    access: "viewer",
    summary: "Everything about one job. For viewers, values that look like secrets are masked.",
    params: idParams,
    output: jobView,
    answers: { 200: "The job." },
  }),
  readKey: contract({
    method: "GET",
    path: "/api/v1/keys",
    access: "viewer",
    summary: "Which job a key stands for: whether an enqueue with it would be a duplicate.",
    query: z.strictObject({
      kind: z.string({ error: "Give the kind." }).meta({ description: "Keys are scoped by kind." }),
      key: z.string({ error: "Give the key." }),
    }),
    output: z.object({
      jobId: uuid.nullable().meta({ description: "null: the key is free. The job itself may be gone." }),
      expiresAt: isoTime.nullable().meta({ description: "Until when it is remembered; null: for ever, or free." }),
    }),
    answers: { 200: "The job, or that the key is free." },
  }),
  cancelJob: contract({
    ...act,
    path: "/api/v1/jobs/:id/cancel",
    summary: "End a job that is waiting; ask a running one to end.",
    output: z.object({ id: uuid, state: z.enum(JOB_STATES), cancelRequested: z.boolean() }),
    answers: { 200: "It is cancelled, or its handler is told." },
  }),
  releaseJob: contract({
    ...act,
    path: "/api/v1/jobs/:id/release",
    summary: "Take a running job away from its worker: it runs again without using an attempt; its old run is refused.",
    output: z.object({ id: uuid, state: z.enum(JOB_STATES) }),
    answers: { 200: "It waits for its next run." },
  }),
  retryJob: contract({
    ...act,
    path: "/api/v1/jobs/:id/retry",
    summary: "Run a dead job again, with all its attempts.",
    output: z.object({ id: uuid, state: z.enum(JOB_STATES) }),
    answers: { 200: "It waits for its next run." },
  }),
  discardJob: contract({
    ...act,
    path: "/api/v1/jobs/:id/discard",
    summary: "Put a dead job away; it stays readable for a while.",
    output: z.object({ id: uuid, state: z.enum(JOB_STATES), discarded: z.boolean() }),
    answers: { 200: "It is put away." },
  }),
  listKinds: contract({
    method: "GET",
    path: "/api/v1/kinds",
    access: "viewer",
    summary: "The kinds of job and of batch that this server accepts.",
    output: z.object({ kinds: z.array(kindView) }),
    answers: { 200: "All of them." },
  }),
};
