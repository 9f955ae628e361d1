// The life of one run: check the payload, run the handler, turn what happened into an outcome. The only place that
// catches what handlers throw. Callbacks instead of async functions: this is paid for every job.
import { parsePayload } from "../job/define-job.ts";
import type { Chunk, ChunkOptions, Generation, JobContext, JobLog, JobTransaction } from "../job/handler.ts";
import { type ErrorRecord, type Outcome, outcomeOf, recordError } from "../job/outcome.ts";
import { fromTransaction } from "../db/caller-transaction.ts";
import type { Transaction } from "../job/caller-transaction.ts";
import type { Store } from "../store/sql.ts";
import { chunksOf } from "./chunks.ts";
import { completeIn, fenced, fenceOther, openGeneration, readCheckpoint, runStep, saveCheckpoint } from "./fenced.ts";
import { isItem, type Run, signalOf } from "./run.ts";

const DEFAULT_CHECKPOINT = "default";

/** What a run may use of its worker. */
export interface RunTools {
  store: Store;
  log(run: { jobId: string; kind: string; attempt: number }): JobLog;
  progress(run: Run, done: number, total: number | undefined, note: string | undefined): Promise<void>;
  /** A transaction of its own has completed the run: its handler may go on for a while. */
  completed(run: Run): void;
}

const DONE: Outcome = Object.freeze({ type: "done", result: undefined });

/** `onEnd` is called once, later or at once. */
export function execute(run: Run, tools: RunTools, onEnd: (run: Run, outcome: Outcome) => void): void {
  const done = (result: unknown): void => onEnd(run, result === undefined ? DONE : { type: "done", result });
  const failed = (error: unknown): void => onEnd(run, endedBy(run, error));
  const start = (payload: unknown): void => {
    let returned: unknown;
    try {
      returned = run.kind.run(new Context(run, tools, payload));
      if (isThenable(returned)) return void returned.then(done, failed);
    } catch (error) {
      return failed(error);
    }
    done(returned);
  };
  if (run.kind.batch && !isItem(run)) return onEnd(run, { type: "dead", error: noItem(run) });
  if (!run.kind.schema) return start(run.job.payload);
  parsePayload(run.kind, run.job.payload).then(start, (error: unknown) =>
    onEnd(run, { type: "dead", error: recordError(error, "invalid-payload") }),
  );
}

/** Its handler would look for an item, and its outcome for a batch. Trying again cannot help. */
function noItem(run: Run): ErrorRecord {
  const message = `"${run.job.kind}" is the kind of a batch, and this job is no item of one: create a batch with hf.batches.create.`;
  return recordError({ name: "Fatal", code: "HOLDFAST_KIND_UNKNOWN", message }, "fatal");
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === "object" && value !== null && typeof (value as { then?: unknown }).then === "function";
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
  readonly #run: Run;
  readonly #tools: RunTools;
  #log: JobLog | undefined;
  constructor(run: Run, tools: RunTools, payload: unknown) {
    this.#run = run;
    this.#tools = tools;
    this.payload = payload;
  }
  get id() {
    return this.#run.job.id;
  }
  get kind() {
    return this.#run.job.kind;
  }
  get queue() {
    return this.#run.job.queue;
  }
  get attempt() {
    return this.#run.job.attempt;
  }
  get maxAttempts() {
    return this.#run.job.max_attempts;
  }
  get key() {
    return this.#run.job.key;
  }
  get group() {
    return this.#run.job.group_key;
  }
  get runAt() {
    return new Date(Number(this.#run.job.run_us) / 1_000);
  }
  get lastError() {
    return this.#run.job.last_error;
  }
  get token() {
    return this.#run.token;
  }
  get signal() {
    return signalOf(this.#run);
  }
  get log() {
    const { id, kind, attempt } = this.#run.job;
    return (this.#log ??= this.#tools.log({ jobId: id, kind, attempt }));
  }
  progress(done: number, total?: number, note?: string): Promise<void> {
    return this.#tools.progress(this.#run, done, total, note);
  }
  transaction<T>(work: (tx: JobTransaction) => Promise<T>): Promise<T> {
    return fenced(this.#tools.store, this.#run, work);
  }
  fence(tx: Transaction): Promise<void> {
    return fenceOther(this.#tools.store, this.#run, fromTransaction(tx));
  }
  step<T>(name: string, work: (tx: JobTransaction) => Promise<T>): Promise<T> {
    return runStep(this.#tools.store, this.#run, name, work);
  }
  complete(tx: Transaction, result?: unknown): Promise<void> {
    this.#run.onCompleted = this.#tools.completed;
    return completeIn(this.#tools.store, this.#run, fromTransaction(tx), result);
  }
  chunks<Item>(name: string, items: Iterable<Item>, options: ChunkOptions<Item> = {}): AsyncIterable<Chunk<Item>> {
    return chunksOf(this.#tools.store, this.#run, name, items, options);
  }
  checkpoint(value: unknown, { name = "", tx }: { name?: string; tx?: JobTransaction } = {}): Promise<void> {
    return saveCheckpoint(this.#tools.store, this.#run, value, name || DEFAULT_CHECKPOINT, tx);
  }
  async lastCheckpoint<Value>(name = DEFAULT_CHECKPOINT): Promise<Value | undefined> {
    return (await readCheckpoint(this.#tools.store, this.#run, name)) as Value | undefined;
  }
  generation(unit: string): Promise<Generation> {
    return openGeneration(this.#tools.store, this.#run, unit);
  }
}
