// hf.batches, as callers see it.
import type { Batch, BatchItem, BatchState } from "../job/batch.ts";
import type { BatchKind } from "../job/define-batch.ts";
import type { Duration } from "../shared/duration.ts";
import type { ErrorGroup } from "../store/batches/errors.ts";
import type { Changes, ChangesOptions } from "./changes.ts";
import type { Applied, ApplyInput } from "./commands.ts";
import type { CreateBatchOptions } from "./create-options.ts";
import type { Items } from "./write-items.ts";

/** The answer to `create`: which batch it is, and whether it is new. */
export interface CreatedBatchAnswer {
  id: string;
  /** False: the key was known, and this is the batch it stands for. */
  created: boolean;
  /** Items of this call that were not there before. */
  added: number;
}

/** Who adds items to an open batch, and from which place on. */
export interface AddOptions {
  /** Who adds; calls of one writer go on where its last one ended. A new one for each call unless told otherwise. */
  writer?: string;
  /** How many items of this writer came before these: what is sent again is known by it. */
  from?: number;
  /** These are the last of all. */
  close?: boolean;
}

/** Which batches to list. */
export interface BatchListOptions {
  state?: BatchState | readonly BatchState[];
  kind?: string;
  owner?: string;
  withErrors?: boolean;
  limit?: number;
  cursor?: string;
}

/** Which items of a batch to list. */
export interface ItemListOptions {
  /** pending, running, handed-over, or an outcome. */
  state?: string;
  limit?: number;
  cursor?: string;
}

/** Who pauses, resumes or cancels a batch; it stands in the feed of changes. */
export interface ControlOptions {
  /** Who asks, for the log. */
  by?: string;
}

/** Which failed items to retry; all of them unless told otherwise. */
export interface RetryOptions extends ControlOptions {
  /** Only these, by their places; others, and what is no error, are left as they are. */
  seqs?: readonly number[];
}

/** What the owner says of an item that was handed back. */
export interface AckOptions extends ControlOptions {
  /** One of those of its kind, or `error`. What the kind's `handBack.ackedAs` says unless told otherwise. */
  outcome?: string;
  result?: unknown;
  /** Why it is an error. */
  error?: string;
}

/** `hf.batches`: makes batches, looks at them and acts on them. */
export interface Batches {
  /** Any number of items, from a list or a stream; they start to run while others are still being added. */
  create<Item, Input, Label extends string>(
    kind: BatchKind<Item, Input, Label>,
    items: Items<NoInfer<Input>>,
    options?: CreateBatchOptions,
  ): Promise<CreatedBatchAnswer>;
  /** More items for a batch that is open. */
  add<Item, Input, Label extends string>(
    kind: BatchKind<Item, Input, Label>,
    id: string,
    items: Items<NoInfer<Input>>,
    options?: AddOptions,
  ): Promise<{ added: number; total: number }>;
  /** No more items will come. */
  close(id: string): Promise<void>;
  get(id: string): Promise<Batch | undefined>;
  /** Newest first; `next` is the cursor of the following page, or null. */
  list(options?: BatchListOptions): Promise<{ batches: Batch[]; next: string | null }>;
  /** In the order in which they were added. A page may be short, or empty, while `next` says that there is more. */
  items(id: string, options?: ItemListOptions): Promise<{ items: BatchItem[]; next: string | null }>;
  item(id: string, seq: number): Promise<BatchItem | undefined>;
  /** All of them, page by page. */
  export(id: string, options?: { state?: string }): AsyncGenerator<BatchItem, void, undefined>;
  /** Errors that look alike, the most frequent first. */
  errors(id: string): Promise<ErrorGroup[]>;
  /** What runs finishes; nothing new starts. */
  pause(id: string, options?: ControlOptions): Promise<Batch>;
  resume(id: string, options?: ControlOptions): Promise<Batch>;
  /** What waits is cancelled now, what runs is told, and what it still comes to is not published. */
  cancel(id: string, options?: ControlOptions): Promise<Batch>;
  /** Items that ended as errors wait again with a full budget, and the batch goes on. */
  retryFailed(id: string, options?: RetryOptions): Promise<{ retried: number; batch: Batch }>;
  /**
   * The owner's word on an item that was handed over: what it came to. The first one counts; later ones are told what
   * it was, and `first` is false. What was handed over is removed with the first.
   */
  ack(id: string, seq: number, options?: AckOptions): Promise<{ outcome: string; first: boolean }>;
  /** What happened since, in an order that never changes and skips nothing; for clients that keep a copy. */
  changes(options?: ChangesOptions): Promise<Changes>;
  /** Commands of a client that works offline, in its order, each once. */
  apply(input: ApplyInput): Promise<Applied>;
  /** A finished batch goes, with its items. */
  delete(id: string, options?: ControlOptions): Promise<void>;
  /** Resolves when it is done, or cancelled and nothing of it runs any more. */
  wait(id: string, options?: { timeout?: Duration }): Promise<Batch>;
}
