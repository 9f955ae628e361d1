// runJob(): one run of one handler, without a database: the payload is stored and checked as it really would be, and
// what the handler does becomes the outcome it really would become.
import { OptionInvalid } from "../errors.ts";
import { type AnyJobKind, type JobKind, parsePayload } from "../job/define-job.ts";
import type { AbortCause, JobLog } from "../job/handler.ts";
import type { Progress } from "../job/job.ts";
import { type ErrorRecord, type Outcome, recordError } from "../job/outcome.ts";
import { toStorableJson } from "../job/storable.ts";
import { randomToken, uuidv7 } from "../shared/uuid.ts";
import type { Store } from "../store/sql.ts";
import { execute, type RunTools } from "../worker/execute.ts";
import { abortRun, makeRun } from "../worker/run.ts";

/** Which attempt it is, and what happens to it. */
export interface RunJobOptions {
  /** 1 unless told otherwise. */
  attempt?: number;
  maxAttempts?: number;
  /** Why the attempt before this one failed: an error, or its record. */
  lastError?: Error | ErrorRecord;
  id?: string;
  key?: string;
  group?: string;
  /** The job's signal is aborted: at once with a cause alone, or when the promise resolves. */
  abort?: AbortCause | { cause: AbortCause; when: Promise<unknown> };
}

/** What one run came to. */
export interface JobRun<Result> {
  /** How the job would be settled. `gone` is done with nothing to do; `release` and `snooze` use no attempt. */
  outcome: Outcome["type"];
  /** As it would be read from the database. */
  result: Result | undefined;
  error: ErrorRecord | undefined;
  /** When it would run again. */
  delayMs: number | undefined;
  progress: Omit<Progress, "at">[];
  log: { level: keyof JobLog; message: string; fields: object | undefined }[];
}

/** One run of one handler, without a database: what it does becomes the outcome that it would become. */
export async function runJob<Payload, Input, Result>(
  kind: JobKind<Payload, Input, Result>,
  payload: NoInfer<Input>,
  options: RunJobOptions = {},
): Promise<JobRun<Result>> {
  const { attempt = 1, maxAttempts = kind.attempts } = options;
  const stored: unknown = JSON.parse(toStorableJson(`The payload of ${kind.kind}`, payload));
  await parsePayload<unknown>(kind, stored);
  const job = {
    id: options.id ?? uuidv7(),
    kind: kind.kind,
    queue: kind.queue,
    payload: stored,
    attempt,
    max_attempts: maxAttempts,
    claim_count: attempt,
    rank: 0,
    key: options.key ?? null,
    group_key: options.group ?? null,
    last_error: options.lastError instanceof Error ? recordError(options.lastError) : (options.lastError ?? null),
    run_us: String(Date.now() * 1_000),
    lag_ms: 0,
  };
  const run = makeRun({ job, kind, token: randomToken(), alone: false, now: performance.now() });
  const progress: JobRun<Result>["progress"] = [];
  const log: JobRun<Result>["log"] = [];
  const logAt =
    (level: keyof JobLog) =>
    (message: string, fields?: object): void =>
      void log.push({ level, message, fields });
  abortAsAsked(options.abort, (cause) => abortRun(run, cause));
  const tools: RunTools = {
    store: NO_DATABASE,
    log: () => ({ debug: logAt("debug"), info: logAt("info"), warn: logAt("warn"), error: logAt("error") }),
    progress(_, done, total, note) {
      progress.push({ done, total: total ?? null, note: note ?? null });
      return Promise.resolve();
    },
    completed() {},
  };
  const outcome = await new Promise<Outcome>((resolve) => execute(run, tools, (_, ended) => resolve(ended)));
  return { ...settled<Result>(kind, outcome, attempt, maxAttempts), progress, log };
}

const refuse = (): Promise<never> =>
  Promise.reject(
    new OptionInvalid(
      "runJob() runs a handler without a database.",
      "For one that uses job.transaction, step, chunks or checkpoint: openTest(), enqueue, runDue().",
    ),
  );

const NO_DATABASE: Store = {
  schema: "none",
  tier: "embedded",
  query: refuse,
  copyIn: undefined,
  assertOutside: () => {},
  transaction: refuse,
  on: () => NO_DATABASE,
};

function abortAsAsked(asked: RunJobOptions["abort"], abort: (cause: AbortCause) => void): void {
  if (asked === undefined) return;
  if (typeof asked === "string") return abort(asked);
  void asked.when.then(() => abort(asked.cause));
}

type Settled<Result> = Pick<JobRun<Result>, "outcome" | "result" | "error" | "delayMs">;

/** The same decisions that the store makes about a run that ended. */
function settled<Result>(kind: AnyJobKind, outcome: Outcome, attempt: number, maxAttempts: number): Settled<Result> {
  const nothing = { result: undefined, error: undefined, delayMs: undefined };
  if (outcome.type === "done") {
    if (outcome.result === undefined) return { ...nothing, outcome: "done" };
    try {
      const result: Result = JSON.parse(toStorableJson(`The result of ${kind.kind}`, outcome.result));
      return { ...nothing, outcome: "done", result };
    } catch (error) {
      return { ...nothing, outcome: "dead", error: recordError(error, "fatal") };
    }
  }
  const error = "error" in outcome ? outcome.error : undefined;
  if (outcome.type === "snooze") return { ...nothing, outcome: "snooze", delayMs: outcome.delayMs };
  if (outcome.type !== "retry") return { ...nothing, outcome: outcome.type, error };
  if (attempt >= maxAttempts) return { ...nothing, outcome: "dead", error };
  return { ...nothing, outcome: "retry", error, delayMs: outcome.delayMs ?? kind.retryPolicy.delayMs(attempt) };
}
