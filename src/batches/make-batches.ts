// Puts hf.batches together: make batches, look at them, act on them, from any process.
import { patiently } from "../db/patiently.ts";
import { steadily } from "../db/steadily.ts";
import { KindUnknown, NotFound, OptionInvalid, StateConflict, WaitTimeout } from "../errors.ts";
import { fromTransaction } from "../db/caller-transaction.ts";
import { type Batch, BATCH_STATES, type BatchItem, type BatchState } from "../job/batch.ts";
import { type AnyBatchKind, isBatchKind } from "../job/define-batch.ts";
import type { AnyJobKind } from "../job/define-job.ts";
import type { HoldfastEvents } from "../metrics/events.ts";
import { checkId } from "../shared/check-id.ts";
import { durationMs } from "../shared/duration.ts";
import { checkLimit, cutPage } from "../shared/page.ts";
import { refuseUnknown } from "../shared/refuse-unknown.ts";
import { makeAlarm } from "../shared/sleep.ts";
import { uuidv7 } from "../shared/uuid.ts";
import type { Added } from "../store/batches/add.ts";
import type { Advanced } from "../store/batches/advance.ts";
import { cancelBatch } from "../store/batches/cancel.ts";
import type { Controlled } from "../store/batches/control.ts";
import { createBatch, type CreatedBatch, type NewBatch } from "../store/batches/create.ts";
import { endHanded } from "../store/batches/end-handed.ts";
import { deleteBatch } from "../store/batches/delete.ts";
import { listErrorGroups } from "../store/batches/errors.ts";
import { listItems, readItem } from "../store/batches/items.ts";
import { pauseBatch } from "../store/batches/pause.ts";
import { listBatches, readBatch } from "../store/batches/read.ts";
import { resumeBatch } from "../store/batches/resume.ts";
import { retryFailedStep } from "../store/batches/retry-failed.ts";
import { ackParcels } from "../store/inbox/ack.ts";
import { removeContent } from "../store/inbox/remove-content.ts";
import type { Store } from "../store/sql.ts";
import { readAck } from "./ack.ts";
import { applyCommands, type ApplyTools } from "./apply.ts";
import type { Batches } from "./batches.ts";
import { changesSince } from "./changes.ts";
import { checkText, readCreateOptions } from "./create-options.ts";
import { addPart, type Part, partsOf, PAUSES_MS } from "./write-items.ts";

export interface BatchesInput {
  store: Store;
  /** The store is a transaction: what fails there fails with it, and whoever has it begins again. */
  isInside?: true;
  /** A change gave slots to items, or ended a batch. */
  onAdvanced(batchId: string, advanced: Advanced): void;
  onCreated(batch: NewBatch): void;
  /** Jobs of items that run and have to stop. */
  onCancelled(jobIds: readonly string[]): void;
  onBatchCancelled(event: HoldfastEvents["batch.cancelled"]): void;
  /** An owner named the outcome of an item. */
  onAcked(event: HoldfastEvents["item.ended"]): void;
  /** Calls back when something about a batch was heard of in this process. */
  onNews(listener: (batchId: string) => void): () => void;
}

const BATCH_ID = "The batch id";
const MAX_PAGE = 500;
/** Fewer than one step retries. */
const MOST_SEQS = 1_000;
const EXPORT_PAGE = 1_000;
/** The writer of what create() adds: whoever goes on with it adds under this name. */
export const MAIN_WRITER = "create";
/** The batch is locked for a moment by each of its changes. */
const PATIENCE = { tries: 15, pauseMs: (failed: number) => 20 + 50 * failed };

export function makeBatches(input: BatchesInput): Batches {
  const { store, onAdvanced, onCreated, onCancelled, onNews, isInside = false } = input;
  const untilFree = <T>(id: string, work: () => Promise<T>): Promise<T> =>
    isInside ? work() : patiently(`Batch ${id}`, PATIENCE, work);
  const found = async (id: string): Promise<Batch> => {
    const batch = await readBatch(store, id);
    if (!batch)
      throw new NotFound(`There is no batch ${id}.`, "Finished batches go after their retention; check the id.");
    return batch;
  };

  /** The batch after a change, or why there was none. */
  async function controlled(
    id: string,
    work: () => Promise<Controlled | undefined>,
    settled: readonly BatchState[],
    verb: string,
    hint: string,
  ): Promise<Batch> {
    const result = await untilFree(id, work);
    if (!result) throw new NotFound(`There is no batch ${id}.`, "Check the id; a deleted batch is gone.");
    if (result.running.length > 0) onCancelled(result.running);
    if (result.advanced) onAdvanced(id, result.advanced);
    if (!result.changed && !settled.includes(result.was)) {
      throw new StateConflict(`Batch ${id} is ${result.was} and cannot be ${verb}.`, hint);
    }
    return await found(id);
  }

  async function begin(target: Store, batch: NewBatch, part: Part, close: boolean): Promise<First> {
    return await target.transaction(async (tx) => {
      const made = await createBatch(tx, batch);
      // Somebody else's, with this key, and complete.
      if (made.id !== batch.id && made.closed) return { made, added: undefined };
      const addition = {
        batchId: made.id,
        writer: MAIN_WRITER,
        from: 0,
        items: part.items,
        close: close && part.isLast,
      };
      return { made, added: await addPart(tx, addition, false) };
    });
  }

  return {
    async create(kind, items, options = {}) {
      assertBatchKind(kind);
      const batch = readCreateOptions(kind, options);
      const own = options.tx === undefined;
      if (own) store.assertOutside();
      const target = own ? store : store.on(fromTransaction(options.tx!));
      // A declared total closes it; otherwise the end of the items does.
      const close = options.open !== true && batch.total === null;
      const parts = partsOf("batches.create()", kind, items);
      const { value: first } = (await parts.next()) as { value: Part };
      const start = (): Promise<First> => begin(target, batch, first, close);
      const canRepeat = own && !isInside;
      const { made, added } = canRepeat ? await steadily(start, PAUSES_MS) : await start();
      const created = made.id === batch.id;
      if (!added) {
        await parts.return(undefined);
        return { id: made.id, created, added: 0 };
      }
      if (own && created) onCreated(batch);
      const tell = (part: Added): void => {
        if (own && part.advanced) onAdvanced(made.id, part.advanced);
      };
      tell(added);
      let count = added.fresh;
      for await (const part of parts) {
        const { items: texts, from, isLast } = part;
        const addition = { batchId: made.id, writer: MAIN_WRITER, from, items: texts, close: close && isLast };
        const more = await naming(made.id, () => addPart(target, addition, canRepeat));
        tell(more);
        count += more.fresh;
      }
      return { id: made.id, created, added: count };
    },
    async add(kind, id, items, options = {}) {
      assertBatchKind(kind);
      checkId(id, BATCH_ID);
      refuseUnknown("batches.add()", options, ["writer", "from", "close"]);
      const { writer = uuidv7(), from = 0, close = false } = options;
      checkText("batches.add() writer", writer);
      if (!Number.isSafeInteger(from) || from < 0) {
        throw new OptionInvalid(`batches.add() from is ${String(from)}.`, "Give a whole number of at least 0.");
      }
      let added = 0;
      let total = 0;
      for await (const part of partsOf("batches.add()", kind, items)) {
        const addition = {
          batchId: id,
          writer,
          from: from + part.from,
          items: part.items,
          close: close && part.isLast,
        };
        const more = await addPart(store, addition, !isInside);
        if (more.advanced) onAdvanced(id, more.advanced);
        added += more.fresh;
        total = more.count;
      }
      return { added, total };
    },
    async close(id) {
      const addition = { batchId: checkId(id, BATCH_ID), writer: MAIN_WRITER, from: 0, items: [], close: true };
      const { advanced } = await addPart(store, addition, !isInside);
      if (advanced) onAdvanced(id, advanced);
    },
    get: (id) => readBatch(store, checkId(id, BATCH_ID)),
    async list(options = {}) {
      refuseUnknown("batches.list()", options, ["state", "kind", "owner", "withErrors", "limit", "cursor"]);
      const limit = checkLimit(options.limit ?? 50, MAX_PAGE);
      const states = options.state === undefined ? undefined : [options.state].flat();
      for (const state of states ?? []) {
        if (!BATCH_STATES.includes(state)) {
          throw new OptionInvalid(`state is ${JSON.stringify(state)}.`, `Give one of ${BATCH_STATES.join(", ")}.`);
        }
      }
      const { kind, owner, withErrors, cursor } = options;
      const before = cursor === undefined ? undefined : checkId(cursor, "cursor");
      const rows = await listBatches(store, { kind, states, owner, withErrors, before, limit: limit + 1 });
      const { page: batches, next } = cutPage(rows, limit);
      return { batches, next };
    },
    async items(id, options = {}) {
      refuseUnknown("batches.items()", options, ["state", "limit", "cursor"]);
      const limit = checkLimit(options.limit ?? 50, MAX_PAGE);
      const after = options.cursor === undefined ? 0 : Number(options.cursor);
      if (!Number.isSafeInteger(after) || after < 0) {
        throw new OptionInvalid(
          `cursor is ${JSON.stringify(options.cursor)}.`,
          "Give what the last page called `next`.",
        );
      }
      const batch = await found(checkId(id, BATCH_ID));
      const { state } = options;
      checkItemState(batch, state);
      const { items, next } = await listItems(store, { batchId: id, batchState: batch.state, state, after, limit });
      return { items, next: next === null ? null : String(next) };
    },
    async item(id, seq) {
      const batch = await found(checkId(id, BATCH_ID));
      return await readItem(store, id, batch.state, checkSeq(seq));
    },
    async *export(id, { state } = {}) {
      let after: number | null = 0;
      while (after !== null) {
        const batch = await found(checkId(id, BATCH_ID));
        checkItemState(batch, state);
        const page: { items: BatchItem[]; next: number | null } = await listItems(store, {
          batchId: id,
          batchState: batch.state,
          state,
          after,
          limit: EXPORT_PAGE,
        });
        yield* page.items;
        after = page.next;
      }
    },
    async errors(id) {
      await found(checkId(id, BATCH_ID));
      return await listErrorGroups(store, id);
    },
    pause: (id, { by } = {}) =>
      controlled(
        checkId(id, BATCH_ID),
        () => pauseBatch(store, id, by ?? null),
        ["paused"],
        "paused",
        "Only a batch that is queued or running can be.",
      ),
    resume: (id, { by } = {}) =>
      controlled(
        checkId(id, BATCH_ID),
        () => resumeBatch(store, id, by ?? null),
        ["queued", "running"],
        "resumed",
        "Only a paused batch can be; retry what failed to go on with one that is done.",
      ),
    async cancel(id, { by } = {}) {
      const before = await readBatch(store, checkId(id, BATCH_ID));
      const batch = await controlled(
        id,
        () => cancelBatch(store, id, by ?? null),
        ["cancelled"],
        "cancelled",
        "It has ended; delete it if nobody needs it.",
      );
      const items = batch.counts["cancelled"]! - (before?.counts["cancelled"] ?? 0);
      if (before?.state !== "cancelled") input.onBatchCancelled({ batchId: id, kind: batch.kind, items });
      return batch;
    },
    async retryFailed(id, options = {}) {
      checkId(id, BATCH_ID);
      refuseUnknown("batches.retryFailed()", options, ["by", "seqs"]);
      const { by, seqs } = options;
      if (seqs !== undefined) checkSeqs(seqs);
      let retried = 0;
      for (let isAnew = true, more = true; more; isAnew = false) {
        const step = await untilFree(id, () => retryFailedStep(store, id, by ?? null, isAnew, seqs));
        if (!step) throw new NotFound(`There is no batch ${id}.`, "Check the id; a deleted batch is gone.");
        if (step.was === "cancelled") {
          throw new StateConflict(
            `Batch ${id} is cancelled and cannot be retried.`,
            "Create a new batch with what is left of it.",
          );
        }
        if (step.isOver) {
          throw new StateConflict(
            `Batch ${id} is past its retention and cannot be retried: its items are being removed.`,
            "Create a new batch; a longer `keep` of its kind leaves more time.",
          );
        }
        if (step.advanced) onAdvanced(id, step.advanced);
        retried += step.retried;
        more = step.more;
      }
      return { retried, batch: await found(id) };
    },
    async ack(id, seq, options = {}) {
      refuseUnknown("batches.ack()", options, ["outcome", "result", "error", "by"]);
      const batch = await found(checkId(id, BATCH_ID));
      const end = readAck(batch, checkSeq(seq), options);
      const ended = await untilFree(id, () =>
        store.transaction(async (tx) => {
          const item = await endHanded(tx, end);
          // Its content has done its work. A parcel that is gone already is no reason to refuse the outcome.
          if (item?.changed && item.parcelId !== null && item.owner !== null) {
            await ackParcels(tx, item.owner, [item.parcelId], 0);
            await removeContent(tx, item.owner, item.parcelId);
          }
          return item;
        }),
      );
      if (!ended || ended.outcome === null) {
        throw new StateConflict(
          `Item ${seq} of batch ${id} is not handed over.`,
          "Only what waits for its owner can be acked; look at its state.",
        );
      }
      if (ended.advanced) onAdvanced(id, ended.advanced);
      if (ended.changed) {
        const { kind, queue } = batch;
        input.onAcked({ batchId: id, seq, kind, queue, outcome: ended.outcome, durationMs: null });
      }
      return { outcome: ended.outcome, first: ended.changed };
    },
    changes: (options = {}) => changesSince(store, options),
    apply: (given) => applyCommands({ store, inside: (tx) => insideOf(input, tx) }, given),
    async delete(id, { by } = {}) {
      const result = await untilFree(id, () => deleteBatch(store, checkId(id, BATCH_ID), by ?? null));
      // Asked for twice: it is gone either way.
      if (!result || result.changed) return;
      throw new StateConflict(
        `Batch ${id} is ${result.was} and cannot be deleted.`,
        result.was === "cancelled" ? "Wait until what runs of it has stopped." : "Cancel it first.",
      );
    },
    async wait(id, options = {}) {
      const until =
        performance.now() + (options.timeout === undefined ? Infinity : durationMs("timeout", options.timeout));
      const alarm = makeAlarm();
      const stop = onNews((batchId) => batchId === id && alarm.ring());
      try {
        for (let pause = 20; ; pause = Math.min(pause * 1.5, 1_000)) {
          const batch = await found(checkId(id, BATCH_ID));
          if (batch.finishedAt !== null) return batch;
          const left = until - performance.now();
          if (left <= 0) {
            throw new WaitTimeout(
              `Batch ${id} is still ${batch.state} after ${String(options.timeout)}: ${batch.ended} of ${batch.total} items have ended.`,
              "It goes on; wait again, or look at its items.",
            );
          }
          await alarm.wait(Math.min(pause, left));
        }
      } finally {
        stop();
      }
    },
  };
}

/** The same inside a transaction; what is to be told is kept for after its commit. */
function insideOf(input: BatchesInput, tx: Store): ReturnType<ApplyTools["inside"]> {
  const told: (() => void)[] = [];
  const note = (batchId: string, advanced: Advanced): void => void told.push(() => input.onAdvanced(batchId, advanced));
  const batches = makeBatches({
    ...input,
    store: tx,
    isInside: true,
    onAdvanced: note,
    onCreated: (batch) => void told.push(() => input.onCreated(batch)),
    onCancelled: (jobIds) => void told.push(() => input.onCancelled(jobIds)),
    onAcked: (event) => void told.push(() => input.onAcked(event)),
    onBatchCancelled: (event) => void told.push(() => input.onBatchCancelled(event)),
  });
  return {
    batches,
    note,
    tell() {
      for (const say of told) say();
    },
  };
}

interface First {
  made: CreatedBatch;
  /** Undefined: it was complete before. */
  added: Added | undefined;
}

/** What went in before the failure is there, and the caller has to know where. */
async function naming<T>(id: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof Error && !error.message.includes(id)) error.message = `Batch ${id}: ${error.message}`;
    throw error;
  }
}

function assertBatchKind(kind: AnyBatchKind): void {
  if (typeof kind?.kind === "string" && isBatchKind(kind)) return;
  const name = (kind as AnyJobKind | undefined)?.kind;
  throw new KindUnknown(
    `${name === undefined ? "What was given" : `"${name}"`} is not a batch kind.`,
    "Hand over what defineBatch() returned.",
  );
}

function checkItemState(batch: Batch, state: string | undefined): void {
  if (state === undefined || state in batch.counts) return;
  throw new OptionInvalid(`state is ${JSON.stringify(state)}.`, `Give one of ${Object.keys(batch.counts).join(", ")}.`);
}

function checkSeq(seq: unknown): number {
  if (typeof seq === "number" && Number.isSafeInteger(seq) && seq >= 1) return seq;
  throw new OptionInvalid(`The item's place is ${String(seq)}.`, "Items are counted from 1.");
}

function checkSeqs(seqs: readonly number[]): void {
  if (!Array.isArray(seqs) || seqs.length > MOST_SEQS) {
    throw new OptionInvalid(
      "batches.retryFailed() seqs is not a list, or too long.",
      `Give up to ${MOST_SEQS} places.`,
    );
  }
  for (const seq of seqs) checkSeq(seq);
}
