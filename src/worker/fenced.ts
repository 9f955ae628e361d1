// Transactions that commit only while the run holds its lease, and what is built on them: steps, completion inside a
// transaction, checkpoints, generations.
//
// The fence is the job's row, locked from the first statement to the commit: a takeover either came before, and there
// is nothing to lock, or skips the row and comes back after the commit.
import { AsyncLocalStorage } from "node:async_hooks";
import { createHash } from "node:crypto";
import { isLockTimeout } from "../db/retryable.ts";
import { LeaseLost, OptionInvalid, StateConflict, TransactionNested } from "../errors.ts";
import type { Generation, JobTransaction } from "../job/handler.ts";
import { type ItemJobPayload, ItemResult } from "../job/item.ts";
import { Snooze } from "../job/outcome.ts";
import { cleanText, toStorableJson } from "../job/storable.ts";
import { settleItems } from "../store/batches/settle.ts";
import { beginGeneration, currentGeneration, switchIfNewer } from "../store/generations/generations.ts";
import { completeInside, type HeldRun, lockIfHeld, lockIfHeldAndFree, renewInside } from "../store/jobs/fence.ts";
import { readNote, writeNote } from "../store/notes/notes.ts";
import type { Store } from "../store/sql.ts";
import type { Queryable } from "../db/db.ts";
import { clockMs } from "./beater.ts";
import { markInside, markRuns } from "./light.ts";
import { abortRun, type Run } from "./run.ts";

/** The fenced transaction that the present code is inside of, or was started from. */
const inside = new AsyncLocalStorage<{ run: Run; isOpen: boolean }>();

/** The present code is inside a fenced transaction of this run, which has the job's row locked. */
export function isInside(run: Run): boolean {
  const outer = inside.getStore();
  return outer?.run === run && outer.isOpen;
}

/** The present code is inside a fenced transaction of this run that is being rolled back already. */
function wasInterrupted(run: Run): boolean {
  const outer = inside.getStore();
  return outer?.run === run && !outer.isOpen && isOver(run);
}

function nested(run: Run): TransactionNested {
  return new TransactionNested(
    `Job ${run.job.id} made a call inside its fenced transaction that would wait for that transaction to end.`,
    "Use the tx you were given, or make the call after it.",
  );
}

/** The worker decided about the run already, or gave it up: what it still writes must not count. */
const isOver = (run: Run): boolean => run.aborted === "lease-lost" || run.outcome !== undefined;

const heldRun = (run: Run): HeldRun => ({ id: run.job.id, token: run.token, leaseMs: run.leaseMs });

function leaseLost(run: Run): LeaseLost {
  return new LeaseLost(
    `The run of job ${run.job.id} (attempt ${run.job.attempt}) lost its lease; nothing was written.`,
    "Stop working on it: another worker has the job, or will soon.",
  );
}

/** Runs `work` on a fenced transaction; `tx` and `store` are the same connection. `renew`: also if it was a short one. */
export async function fenced<T>(
  store: Store,
  run: Run,
  work: (tx: JobTransaction, store: Store) => Promise<T>,
  renew = store.tier === "embedded",
): Promise<T> {
  if (isInside(run)) throw nested(run);
  if (isOver(run)) throw leaseLost(run);
  await markRuns(store, [run]);
  const began = clockMs();
  let renewedAt = -Infinity;
  const result = await store.transaction(async (txStore, tx) => {
    if (!(await lockIfHeld(txStore, heldRun(run)))) {
      abortRun(run, "lease-lost");
      throw leaseLost(run);
    }
    // Decided while we waited for a connection or the row.
    if (isOver(run)) throw leaseLost(run);
    // The row is still ours: what was said to have completed it has not committed.
    forgetCompletion(run);
    const here = { run, isOpen: true };
    let interrupt = (): void => {};
    const interrupted = new Promise<never>((_, reject) => (interrupt = () => reject(leaseLost(run))));
    (run.interrupts ??= new Set()).add(interrupt);
    try {
      const value = await Promise.race([inside.run(here, () => work(tx, txStore)), interrupted]);
      const sentAt = clockMs();
      if ((renew || sentAt - began > run.leaseMs / 3) && (await renewInside(txStore, heldRun(run)))) renewedAt = sentAt;
      return value;
    } catch (error) {
      forgetCompletion(run);
      throw error;
    } finally {
      here.isOpen = false;
      run.interrupts.delete(interrupt);
    }
  });
  if (run.completedAs) {
    run.hasCompleted = true;
    run.onCompleted?.(run);
  }
  // What the database knows, our own clock must know too: it would end the run otherwise if beats cannot get through.
  if (run.lease) run.lease.goodUntil = Math.max(run.lease.goodUntil, renewedAt + run.leaseMs);
  return result;
}

function forgetCompletion(run: Run): void {
  run.completedAs = undefined;
  run.heir = null;
  run.advanced = undefined;
}

/** Fences a transaction that somebody else opened. */
export async function fenceOther(store: Store, run: Run, tx: Queryable): Promise<void> {
  if (isInside(run)) {
    // This very transaction, which has the lock; or another one, which would wait for it.
    if (await lockIfHeldAndFree(store.on(tx), heldRun(run))) return;
    throw nested(run);
  }
  if (isOver(run)) throw leaseLost(run);
  await markInside(store.on(tx), run);
  if (await lockIfHeld(store.on(tx), heldRun(run))) return;
  abortRun(run, "lease-lost");
  throw leaseLost(run);
}

/** Completion inside a transaction. If that rolls back, the run goes on as if this had not been called. */
export async function completeIn(store: Store, run: Run, tx: Queryable, result: unknown): Promise<void> {
  await fenceOther(store, run, tx);
  if (run.kind.batch) return await unlessLocked(run, () => completeItem(store.on(tx), run, result));
  const json = result === undefined ? undefined : toStorableJson(`The result of ${run.job.kind}`, result);
  const { keepDoneMs: keepMs } = run.kind;
  const { id, group_key: group } = run.job;
  const ended = {
    id,
    token: run.token,
    result: json,
    keepMs,
    keepEndedMs: keepMs,
    outcome: "done" as const,
    delayMs: 0,
    group,
  };
  const settled = await unlessLocked(run, () => completeInside(store.on(tx), ended));
  if (!settled || wasInterrupted(run)) throw leaseLost(run);
  run.completedAs = settled.verdict;
  run.heir = settled.heir;
}

/** Long enough for most who hold a batch or a group in an open transaction. */
const LOCKED_PAUSE = "500ms";

/**
 * What a completion needs beside its own row, its batch or its group, may be locked by somebody whose process stands still inside a
 * transaction. That is not this run's fault: the transaction is broken, and the run is put off without an attempt.
 */
async function unlessLocked<T>(run: Run, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!isLockTimeout(error)) throw error;
    const what = run.kind.batch ? "The batch" : "The group";
    const message = `${what} of ${run.job.kind} ${run.job.id} is locked by a transaction that does not end: it is put off, and no attempt is used.`;
    throw Object.assign(new Snooze(LOCKED_PAUSE, message), { cause: error });
  }
}

/** The same for an item: its outcome, and what follows from it in its batch, are part of the transaction. */
async function completeItem(store: Store, run: Run, end: unknown): Promise<void> {
  const { batch, seq } = run.job.payload as ItemJobPayload;
  const { label, result, parcelId } = end instanceof ItemResult ? end : new ItemResult(run.kind.batch!.first, end);
  const json = result === undefined ? undefined : toStorableJson(`The result of an item of ${run.job.kind}`, result);
  const outcome = parcelId === undefined ? ("done" as const) : ("handed" as const);
  const item = { id: run.job.id, token: run.token, outcome, delayMs: 0, label, result: json, parcelId };
  const { items, advanced } = await settleItems(store, batch, [item]);
  const verdict = items[0]?.verdict;
  if (verdict === undefined || wasInterrupted(run)) throw leaseLost(run);
  if (verdict === "cancelled") {
    throw new StateConflict(
      `Item ${seq} of batch ${batch} was cancelled while it ran: what it came to is not published.`,
      "Roll the transaction back; the item ends as cancelled.",
    );
  }
  run.completedAs = "done";
  run.advanced = advanced;
}

export function checkNoteName(what: string, name: unknown): string {
  if (typeof name !== "string" || name === "" || name.length > 200 || cleanText(name, 200) !== name) {
    throw new OptionInvalid(`${what} is ${JSON.stringify(name)}.`, "Give it a name of 1 to 200 characters.");
  }
  return name;
}

export async function runStep<T>(
  store: Store,
  run: Run,
  name: string,
  work: (tx: JobTransaction) => Promise<T>,
): Promise<T> {
  checkNoteName("The step's name", name);
  return await fenced(store, run, async (tx, txStore) => {
    const noted = await readNote<Versioned<T>>(txStore, run.job.id, "step", name);
    if (noted?.value.version === payloadVersion(run)) return noted.value.value;
    const json = toStorableJson(`The result of step ${name}`, await work(tx));
    await writeNote(txStore, run.job.id, "step", name, versioned(run, json));
    // The same in this attempt as in later ones: a Date is a text in all of them.
    return JSON.parse(json) as T;
  });
}

/** Tells one input from another: notes of an older payload are not resumed into. */
export function payloadVersion(run: Run): string {
  return (run.version ??= createHash("sha256").update(JSON.stringify(run.job.payload)).digest("hex").slice(0, 16));
}

/** What a note of one payload looks like: with another payload it does not count. */
interface Versioned<T> {
  version: string;
  value: T;
}

const versioned = (run: Run, json: string): string => `{"version":"${payloadVersion(run)}","value":${json}}`;

export async function saveCheckpoint(
  store: Store,
  run: Run,
  value: unknown,
  name: string,
  tx: JobTransaction | undefined,
): Promise<void> {
  checkNoteName("The checkpoint's name", name);
  const note = versioned(run, toStorableJson("The checkpoint", value));
  const write = (target: Store): Promise<void> => writeNote(target, run.job.id, "checkpoint", name, note);
  if (tx) {
    await fenceOther(store, run, tx);
    await write(store.on(tx));
  } else await fenced(store, run, (_, txStore) => write(txStore));
}

export async function readCheckpoint(store: Store, run: Run, name: string): Promise<unknown> {
  const noted = await readNote<Versioned<unknown>>(store, run.job.id, "checkpoint", name);
  return noted?.value.version === payloadVersion(run) ? noted.value.value : undefined;
}

/** The same generation in every attempt with the same payload: a forced rebuild resumes within its own. */
export async function openGeneration(store: Store, run: Run, unit: string): Promise<Generation> {
  checkNoteName("The unit", unit);
  const version = payloadVersion(run);
  const { number, previous } = await fenced(store, run, async (_, txStore) => {
    const noted = await readNote<{ version: string; number: string; previous: string }>(
      txStore,
      run.job.id,
      "generation",
      unit,
    );
    if (noted?.value.version === version) return noted.value;
    const previousNumber = await currentGeneration(txStore, unit);
    const begun = await beginGeneration(txStore, unit);
    const value = { version, number: begun.number, previous: previousNumber };
    await writeNote(txStore, run.job.id, "generation", unit, JSON.stringify(value));
    return value;
  });
  return {
    number,
    previous,
    async makeCurrent(tx) {
      await fenceOther(store, run, tx);
      return await switchIfNewer(store.on(tx), unit, number);
    },
  };
}
