// defineJob(kind, options): what a kind of job is. Checked once, here; a wrong option is an error at start, not at
// three in the morning.
import type { StandardSchemaV1 } from "@standard-schema/spec";
import { OptionInvalid } from "../errors.ts";
import { durationMs, retentionMs, type Duration } from "../shared/duration.ts";
import { refuseUnknown } from "../shared/refuse-unknown.ts";
import type { JobContext } from "./handler.ts";
import { misfit } from "./misfit.ts";
import { type Backoff, DEFAULT_BACKOFF, makeRetryPolicy, type RetryPolicy } from "./retry-policy.ts";

/** What `defineJob` takes; docs/options.md has the defaults. */
export interface JobOptions<Payload, Input, Result> {
  /** Any Standard Schema; checked at enqueue and again at claim. */
  schema?: StandardSchemaV1<Input, Payload>;
  queue?: string;
  attempts?: number;
  backoff?: Backoff;
  /** How long after its last beat a worker is taken for dead; beats make it longer while the process lives. */
  lease?: Duration;
  /** The wall clock for a handler that is alive but stuck. */
  timeout?: Duration;
  /** The longest single call of the handler; what `job.chunks` gives a `chunk.call` unless told otherwise. */
  callTimeout?: Duration;
  /** How long a finished job stays readable. */
  keepDone?: Duration | "forever";
  /** How long the ledger remembers this kind's keys. */
  keepKeys?: Duration | "forever";
  /** Fields of payload and result that nobody sees over HTTP and on the dashboard: ["customer.email"]. */
  redact?: readonly string[];
  run(job: JobContext<Payload>): Promise<Result> | Result;
}

/** A kind of job: what `enqueue` and `work` take. */
export interface JobKind<Payload = unknown, Input = Payload, Result = unknown> {
  readonly kind: string;
  readonly queue: string;
  readonly attempts: number;
  readonly leaseMs: number;
  readonly timeoutMs: number;
  /** undefined: not declared. */
  readonly callTimeoutMs: number | undefined;
  readonly keepDoneMs: number | null;
  readonly keepKeysMs: number | null;
  /** Fields that are masked over HTTP. */
  readonly redact: readonly string[];
  /** What was left to the client's own defaults, which may differ by queue. */
  readonly unset: readonly ("keepDone" | "lease")[];
  readonly retryPolicy: RetryPolicy;
  readonly schema: StandardSchemaV1<Input, Payload> | undefined;
  /** Its jobs are items of batches, and end as such; defineBatch() makes these. */
  readonly batch?: ItemPlan;
  run(job: JobContext<Payload>): Promise<Result> | Result;
}

/** What a worker has to know about items. */
export interface ItemPlan {
  readonly labels: readonly string[];
  /** The outcome of a plain return. */
  readonly first: string;
}

/** Any kind, whatever its payload: for lists of kinds. */
// oxlint-disable-next-line typescript/no-explicit-any -- payloads are contravariant; only `any` lets a list hold kinds of different payloads
export type AnyJobKind = JobKind<any, any, any>;

const NAME_FORM = /^[A-Za-z0-9][A-Za-z0-9._:/-]{0,127}$/;

export function checkName(what: string, name: unknown): string {
  if (typeof name !== "string" || !NAME_FORM.test(name)) {
    throw new OptionInvalid(
      `${what} is ${JSON.stringify(name)}.`,
      "Use 1 to 128 letters, digits and . _ : / - and start with a letter or a digit.",
    );
  }
  return name;
}

const MAX_ATTEMPTS = 1_000;

export function checkAttempts(what: string, value: unknown): number {
  if (!Number.isInteger(value) || (value as number) < 1 || (value as number) > MAX_ATTEMPTS) {
    throw new OptionInvalid(`${what} is ${String(value)}.`, `Give a whole number from 1 to ${MAX_ATTEMPTS}.`);
  }
  return value as number;
}

const KNOWN = [
  "schema",
  "queue",
  "attempts",
  "backoff",
  "lease",
  "timeout",
  "callTimeout",
  "keepDone",
  "keepKeys",
  "redact",
  "run",
];

/**
 * A kind of job: its name, its handler and how it is tried. Give it to `hf.enqueue` and `hf.work`. Wrong options are
 * refused here.
 */
export function defineJob<Payload = unknown, Input = Payload, Result = unknown>(
  kind: string,
  options: JobOptions<Payload, Input, Result>,
): JobKind<Payload, Input, Result> {
  checkName("The job kind", kind);
  const at = (option: string): string => `defineJob("${kind}").${option}`;
  if (options === null || typeof options !== "object") {
    throw new OptionInvalid(`defineJob("${kind}") got no options.`, "Give at least { run }.");
  }
  refuseUnknown(`defineJob("${kind}")`, options, KNOWN);
  if (typeof options.run !== "function") {
    throw new OptionInvalid(`${at("run")} is not a function.`, "Give the handler: async run(job) { … }.");
  }
  if (options.schema !== undefined && typeof options.schema["~standard"]?.validate !== "function") {
    throw new OptionInvalid(`${at("schema")} is not a Standard Schema.`, "Zod, Valibot and ArkType schemas are.");
  }
  const leaseMs = durationMs(at("lease"), options.lease ?? "30s");
  if (leaseMs < 100) {
    throw new OptionInvalid(`${at("lease")} is ${String(options.lease)}.`, 'The shortest lease is "100ms".');
  }
  const timeoutMs = durationMs(at("timeout"), options.timeout ?? "1h");
  if (timeoutMs < 1) {
    throw new OptionInvalid(`${at("timeout")} is ${String(options.timeout)}.`, "Give the handler some time.");
  }
  const callTimeoutMs =
    options.callTimeout === undefined ? undefined : durationMs(at("callTimeout"), options.callTimeout);
  if (callTimeoutMs !== undefined && callTimeoutMs < 1) {
    throw new OptionInvalid(`${at("callTimeout")} is ${String(options.callTimeout)}.`, "Give the call some time.");
  }
  return Object.freeze({
    kind,
    queue: checkName(at("queue"), options.queue ?? "default"),
    attempts: checkAttempts(at("attempts"), options.attempts ?? 5),
    leaseMs,
    timeoutMs,
    callTimeoutMs,
    keepDoneMs: retentionMs(at("keepDone"), options.keepDone ?? "168h"),
    keepKeysMs: retentionMs(at("keepKeys"), options.keepKeys ?? "30d"),
    redact: checkRedact(at("redact"), options.redact ?? []),
    unset: (["keepDone", "lease"] as const).filter((option) => options[option] === undefined),
    retryPolicy: makeRetryPolicy(at("backoff"), options.backoff ?? DEFAULT_BACKOFF),
    schema: options.schema,
    run: options.run,
  });
}

const MOST_PATHS = 100;

function checkRedact(what: string, paths: unknown): readonly string[] {
  const isPath = (path: unknown): boolean =>
    typeof path === "string" && path.length <= 500 && path.split(".").every((name) => name !== "");
  if (Array.isArray(paths) && paths.length <= MOST_PATHS && paths.every(isPath)) return Object.freeze([...paths]);
  throw new OptionInvalid(
    `${what} is ${(JSON.stringify(paths) ?? typeof paths).slice(0, 100)}.`,
    `Give a list of at most ${MOST_PATHS} fields, such as ["customer.email"].`,
  );
}

/** The payload as the schema says it is; or a PayloadInvalid that lists what is wrong, place by place. */
export async function parsePayload<Payload>(kind: JobKind<Payload>, input: unknown): Promise<Payload> {
  if (!kind.schema) return input as Payload;
  const outcome = await kind.schema["~standard"].validate(input);
  if (!outcome.issues) return outcome.value;
  const hint = "Correct the payload, or the schema of this kind.";
  throw misfit(`The payload of ${kind.kind}`, outcome.issues, hint);
}
