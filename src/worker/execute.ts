// The life of one run: check the payload, run the handler, turn what happened into an outcome. The only place that
// catches what handlers throw.
import { parsePayload } from "../job/define-job.ts";
import type { JobContext, JobLog } from "../job/handler.ts";
import { type Outcome, outcomeOf, recordError } from "../job/outcome.ts";
import { type Run, signalOf } from "./run.ts";

export interface ExecuteInput {
  run: Run;
  log(run: { jobId: string; kind: string; attempt: number }): JobLog;
  progress(run: Run, done: number, total: number | undefined, note: string | undefined): Promise<void>;
}

export async function execute(input: ExecuteInput): Promise<Outcome> {
  const { run } = input;
  let payload = run.job.payload;
  if (run.kind.schema) {
    try {
      payload = await parsePayload(run.kind, payload);
    } catch (error) {
      return { type: "dead", error: recordError(error, "invalid-payload") };
    }
  }
  try {
    const result: unknown = await run.kind.run(new Context(input, payload));
    return { type: "done", result };
  } catch (error) {
    return endedBy(run, error);
  }
}

/** A handler that threw after its signal was aborted ended because of that, whatever it threw. */
function endedBy(run: Run, error: unknown): Outcome {
  switch (run.aborted) {
    case "shutdown":
      return { type: "release" };
    case "cancelled":
      return { type: "cancelled", error: recordError(error) };
    default:
      return outcomeOf(error);
  }
}

class Context implements JobContext {
  readonly payload: unknown;
  readonly #input: ExecuteInput;
  #log: JobLog | undefined;
  constructor(input: ExecuteInput, payload: unknown) {
    this.#input = input;
    this.payload = payload;
  }
  get id() {
    return this.#input.run.job.id;
  }
  get kind() {
    return this.#input.run.job.kind;
  }
  get queue() {
    return this.#input.run.job.queue;
  }
  get attempt() {
    return this.#input.run.job.attempt;
  }
  get maxAttempts() {
    return this.#input.run.job.max_attempts;
  }
  get key() {
    return this.#input.run.job.key;
  }
  get group() {
    return this.#input.run.job.group_key;
  }
  get createdAt() {
    return new Date(Number(this.#input.run.job.created_us) / 1_000);
  }
  get runAt() {
    return new Date(Number(this.#input.run.job.run_us) / 1_000);
  }
  get lastError() {
    return this.#input.run.job.last_error;
  }
  get token() {
    return this.#input.run.token;
  }
  get signal() {
    return signalOf(this.#input.run);
  }
  get log() {
    const { id, kind, attempt } = this.#input.run.job;
    return (this.#log ??= this.#input.log({ jobId: id, kind, attempt }));
  }
  progress(done: number, total?: number, note?: string): Promise<void> {
    return this.#input.progress(this.#input.run, done, total, note);
  }
}
