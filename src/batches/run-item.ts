// What runs an item: an ordinary job's run with the item's own context around it.
import { Fatal } from "../job/outcome.ts";
import type { Transaction } from "../job/caller-transaction.ts";
import type { AnyBatchKind } from "../job/define-batch.ts";
import type { AnyJobKind } from "../job/define-job.ts";
import type { ChunkOptions, JobContext, JobTransaction } from "../job/handler.ts";
import {
  checkOutcome,
  type HandBackFile,
  type ItemContext,
  type ItemJobPayload,
  ItemResult,
  parseItem,
  toItemResult,
} from "../job/item.ts";

/** What is handed back goes here. */
export interface HandBackDoor {
  /** Stores it without showing it to anybody, and puts it in the commit that `complete` is part of. */
  put(
    batchId: string,
    seq: number,
    content: unknown,
    file: HandBackFile,
    inCommit: (work: (tx: JobTransaction) => Promise<string>) => Promise<void>,
  ): Promise<void>;
}

export interface RunItemTools {
  handBack: HandBackDoor;
  /** The first item of a batch that this process runs. */
  started(batchId: string): void;
}

/** The kind as a worker runs it. */
export function makeRunnable(kind: AnyBatchKind, tools: RunItemTools): AnyJobKind {
  const run = async (job: JobContext<ItemJobPayload>): Promise<ItemResult> => {
    const { batch: batchId, item: stored } = job.payload;
    tools.started(batchId);
    const payload = await parseItem(kind.kind, kind.batch, stored).catch((error: unknown) => {
      throw new Fatal(error instanceof Error ? error.message : String(error), { cause: error });
    });
    const returned: unknown = await kind.batch.run(new Item(job, kind, payload, tools));
    try {
      return toItemResult(kind.kind, kind.batch, returned);
    } catch (error) {
      // The handler's mistake, and the same on every try.
      throw new Fatal(error instanceof Error ? error.message : String(error), { cause: error });
    }
  };
  return Object.create(kind, { run: { value: run } }) as AnyJobKind;
}

class Item implements ItemContext {
  readonly payload: unknown;
  readonly #job: JobContext<ItemJobPayload>;
  readonly #kind: AnyBatchKind;
  readonly #tools: RunItemTools;
  constructor(job: JobContext<ItemJobPayload>, kind: AnyBatchKind, payload: unknown, tools: RunItemTools) {
    this.#job = job;
    this.#kind = kind;
    this.#tools = tools;
    this.payload = payload;
  }
  get id() {
    return this.#job.id;
  }
  get kind() {
    return this.#job.kind;
  }
  get queue() {
    return this.#job.queue;
  }
  get batchId() {
    return this.#job.payload.batch;
  }
  get seq() {
    return this.#job.payload.seq;
  }
  get bounces() {
    return this.#job.payload.bounces;
  }
  get attempt() {
    return this.#job.attempt;
  }
  get maxAttempts() {
    return this.#job.maxAttempts;
  }
  get runAt() {
    return this.#job.runAt;
  }
  get lastError() {
    return this.#job.lastError;
  }
  get token() {
    return this.#job.token;
  }
  get signal() {
    return this.#job.signal;
  }
  get log() {
    return this.#job.log;
  }
  progress(done: number, total?: number, note?: string) {
    return this.#job.progress(done, total, note);
  }
  transaction<T>(work: (tx: JobTransaction) => Promise<T>) {
    return this.#job.transaction(work);
  }
  fence(tx: Transaction) {
    return this.#job.fence(tx);
  }
  step<T>(name: string, work: (tx: JobTransaction) => Promise<T>) {
    return this.#job.step(name, work);
  }
  chunks<Each>(name: string, items: Iterable<Each>, options?: ChunkOptions<Each>) {
    return this.#job.chunks(name, items, options);
  }
  checkpoint(value: unknown, options?: { name?: string; tx?: JobTransaction }) {
    return this.#job.checkpoint(value, options);
  }
  lastCheckpoint<Value>(name?: string) {
    return this.#job.lastCheckpoint<Value>(name);
  }
  generation(unit: string) {
    return this.#job.generation(unit);
  }
  async complete(tx: Transaction, outcome: string = this.#kind.batch.first, result?: unknown) {
    const label = checkOutcome(this.#kind.kind, this.#kind.batch, outcome);
    await this.#job.complete(tx, new ItemResult(label, result));
  }
  async handBack(content: unknown, file: HandBackFile = {}) {
    let handed = new ItemResult(this.#kind.batch.first, undefined);
    await this.#tools.handBack.put(this.batchId, this.seq, content, file, (put) =>
      this.#job.transaction(async (tx) => {
        handed = new ItemResult(this.#kind.batch.first, undefined, await put(tx));
        await this.#job.complete(tx, handed);
      }),
    );
    return handed;
  }
}
