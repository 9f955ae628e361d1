// Transactions that commit only while the run holds its lease, and what is built on them: steps, completion inside a
// transaction, checkpoints, generations.
//
// The fence is the job's row, locked from the first statement to the commit: a takeover either came before, and there
// is nothing to lock, or skips the row and comes back after the commit.
import { AsyncLocalStorage } from "node:async_hooks";
import { createHash } from "node:crypto";
import { performance } from "node:perf_hooks";
import { LeaseLost, OptionInvalid, TransactionNested } from "../errors.ts";
import type { Generation, JobTransaction } from "../job/handler.ts";
import { cleanText, toStorableJson } from "../job/storable.ts";
import { beginGeneration, currentGeneration, switchIfNewer } from "../store/generations/generations.ts";
import { completeInside, type HeldRun, lockIfHeld, renewInside } from "../store/jobs/fence.ts";
import { readNote, writeNote } from "../store/notes/notes.ts";
import type { Store } from "../store/sql.ts";
import type { Queryable } from "../db/db.ts";
import { abortRun, type Run } from "./run.ts";

/** Runs whose fenced transaction the present code is inside of. */
const inside = new AsyncLocalStorage<Run>();

export const heldRun = (run: Run): HeldRun => ({ id: run.job.id, token: run.token, leaseMs: run.leaseMs });

export function leaseLost(run: Run): LeaseLost {
  return new LeaseLost(
    `The run of job ${run.job.id} (attempt ${run.job.attempt}) lost its lease; nothing was written.`,
    "Stop working on it: another worker has the job, or will soon.",
  );
}

/** Runs `work` on a fenced transaction; `tx` and `store` are the same connection. */
export async function fenced<T>(
  store: Store,
  run: Run,
  work: (tx: JobTransaction, store: Store) => Promise<T>,
): Promise<T> {
  if (inside.getStore() === run) {
    throw new TransactionNested(
      `Job ${run.job.id} opened a fenced transaction inside another one: it would wait for itself.`,
      "Use the tx you were given.",
    );
  }
  if (run.aborted === "lease-lost" || run.outcome) throw leaseLost(run);
  const began = performance.now();
  return await store.transaction(async (txStore, tx) => {
    if (!(await lockIfHeld(txStore, heldRun(run)))) {
      abortRun(run, "lease-lost");
      throw leaseLost(run);
    }
    const result = await inside.run(run, () => work(tx, txStore));
    if (performance.now() - began > run.leaseMs / 3 || store.tier === "embedded")
      await renewInside(txStore, heldRun(run));
    return result;
  });
}

/** Fences a transaction that somebody else opened. */
export async function fenceOther(store: Store, run: Run, tx: Queryable): Promise<void> {
  if (await lockIfHeld(store.on(tx), heldRun(run))) return;
  abortRun(run, "lease-lost");
  throw leaseLost(run);
}

/** Completion inside a transaction. If that rolls back, the run goes on as if this had not been called. */
export async function completeIn(store: Store, run: Run, tx: Queryable, result: unknown): Promise<void> {
  await fenceOther(store, run, tx);
  const json = result === undefined ? undefined : toStorableJson(`The result of ${run.job.kind}`, result);
  const { keepDoneMs: keepMs } = run.kind;
  const { id, group_key: group } = run.job;
  const ended = { id, token: run.token, result: json, keepMs, outcome: "done" as const, delayMs: 0, group };
  if (!(await completeInside(store.on(tx), ended))) throw leaseLost(run);
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
    const noted = await readNote<T>(txStore, run.job.id, "step", name);
    if (noted) return noted.value;
    const result = await work(tx);
    await writeNote(txStore, run.job.id, "step", name, toStorableJson(`The result of step ${name}`, result));
    return result;
  });
}

/** Tells one input from another: notes of an older payload are not resumed into. */
export function payloadVersion(run: Run): string {
  return (run.version ??= createHash("sha256").update(JSON.stringify(run.job.payload)).digest("hex").slice(0, 16));
}

interface Checkpoint {
  version: string;
  value: unknown;
}

export async function saveCheckpoint(
  store: Store,
  run: Run,
  value: unknown,
  name: string,
  tx: JobTransaction | undefined,
): Promise<void> {
  checkNoteName("The checkpoint's name", name);
  const json = toStorableJson("The checkpoint", value);
  const note = `{"version":"${payloadVersion(run)}","value":${json}}`;
  const write = (target: Store): Promise<void> => writeNote(target, run.job.id, "checkpoint", name, note);
  if (tx) await write(store.on(tx));
  else await fenced(store, run, (_, txStore) => write(txStore));
}

export async function readCheckpoint(store: Store, run: Run, name: string): Promise<unknown> {
  const noted = await readNote<Checkpoint>(store, run.job.id, "checkpoint", name);
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
  return { number, previous, makeCurrent: (tx) => switchIfNewer(store.on(tx), unit, number) };
}
