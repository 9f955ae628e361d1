// Accepts work. Calls made at the same time share one statement; each promise resolves only after its own row is
// durable, and one bad row fails alone.
//
// No answer is answered by asking again under the same id: first for what is there already, then for the rest.
import { codeOf, isConnectionTrouble, isLockTimeout, isRetryable } from "../db/retryable.ts";
import { DatabaseUnavailable, OptionInvalid, StateConflict } from "../errors.ts";
import type { AnyJobKind } from "../job/define-job.ts";
import { makeCoalescer, type Turn } from "../shared/coalesce.ts";
import { jitter, sleep } from "../shared/sleep.ts";
import { canBeTaken, findExisting, type Inserted, insertJobs, insertTaken, type NewJob } from "../store/jobs/insert.ts";
import type { ClaimedJob } from "../store/jobs/claim.ts";
import type { HandOver } from "../worker/claim-loop.ts";
import type { Store } from "../store/sql.ts";
import { fromTransaction } from "../db/caller-transaction.ts";
import type { Transaction } from "../job/caller-transaction.ts";
import { checkPayload, type EnqueueOptions, type EnqueueRow, toNewJob } from "./new-job.ts";

/** The answer to an enqueue: which job it is, and whether it is new. */
export interface Enqueued {
  id: string;
  /** False: the key was known, or the job was coalesced into an open one; `id` is that job's. */
  created: boolean;
  /** Same key, other payload: the first one stays. */
  conflict: boolean;
  /** It went into an open job with the same coalesce key. */
  coalesced: boolean;
}

export interface Enqueuer {
  enqueue(kind: AnyJobKind, payload: unknown, options: EnqueueOptions): Promise<Enqueued>;
  enqueueMany(kind: AnyJobKind, rows: readonly EnqueueRow<unknown>[], tx?: Transaction): Promise<Enqueued[]>;
  idle(): Promise<void>;
}

export interface EnqueuerInput {
  store: Store;
  /** The jobs of one statement, after its commit. `taken`: a worker of this process has them already. */
  onEnqueued(jobs: readonly NewJob[], results: readonly Inserted[], taken: boolean): void;
  /** A worker of this process that waits for as many jobs of this kind. */
  offer(kind: string, count: number): HandOver | undefined;
  /** How long the statement that stored so many jobs took. */
  onAnswered(jobs: number, tookMs: number): void;
  onTrouble(error: unknown): void;
}

const MAX_ROWS = 1_000;
const MANY_ROWS = 10_000;
const MAX_BYTES = 4 * 1_048_576;
const LOCK_TIMEOUT_MS = 100;
const PATIENCE_MS = 5_000;
const PAUSES_MS = [50, 250, 1_000, 2_500];

const STORED = { created: true, conflict: false, coalesced: false };
const ROWS_HINT = "Give an array of rows: [{ payload: … }].";

export function makeEnqueuer({ store, onEnqueued, onAnswered, offer, onTrouble }: EnqueuerInput): Enqueuer {
  /**
   * Straight to a worker that waits for them: stored and claimed in one commit. "none": nobody waits; "unknown": they may be
   * stored all the same, and even done.
   */
  async function handOver(jobs: readonly NewJob[]): Promise<Inserted[] | "none" | "unknown"> {
    const worker = canBeTaken(jobs) ? offer(jobs[0]!.kind, jobs.length) : undefined;
    if (!worker) return "none";
    let taken: ClaimedJob[];
    const sentAt = performance.now();
    try {
      taken = await insertTaken(store, jobs, worker);
      onAnswered(jobs.length, performance.now() - sentAt);
    } catch (error) {
      worker.failed(error);
      onTrouble(error);
      return "unknown";
    }
    const results = jobs.map(({ id }) => ({ id, ...STORED }));
    onEnqueued(jobs, results, true);
    worker.taken(taken);
    return results;
  }

  /** One statement for these jobs, sent again while the answer is unknown. `isAgain`: they were sent before. */
  async function insert(jobs: readonly NewJob[], lockTimeoutMs: number, isAgain = false): Promise<Inserted[]> {
    let known = new Set<string>();
    for (let tries = 0; ; tries += 1) {
      try {
        if (isAgain || tries > 0)
          known = await findExisting(
            store,
            jobs.map((job) => job.id),
          );
        const missing = jobs.filter((job) => !known.has(job.id));
        const sentAt = performance.now();
        const inserted = missing.length === 0 ? [] : await insertJobs(store, missing, lockTimeoutMs);
        if (missing.length > 0) onAnswered(missing.length, performance.now() - sentAt);
        const results = known.size === 0 ? inserted : withKnown(jobs, known, inserted);
        onEnqueued(jobs, results, false);
        return results;
      } catch (error) {
        // Stored by an earlier try of which we never heard.
        const isDuplicate = codeOf(error) === "23505";
        if (!isConnectionTrouble(error) && !isRetryable(error) && !isDuplicate) throw error;
        if (isLockTimeout(error) || tries >= PAUSES_MS.length) throw error;
        onTrouble(error);
        await sleep(jitter(PAUSES_MS[tries]!));
      }
    }
  }

  async function run(jobs: NewJob[]): Promise<(Inserted | Error | Promise<Inserted>)[]> {
    try {
      const handed = await handOver(jobs);
      return typeof handed === "string" ? await insert(jobs, LOCK_TIMEOUT_MS, handed === "unknown") : handed;
    } catch (error) {
      if (isConnectionTrouble(error)) return jobs.map((job) => unknownOutcome(job, error));
      if (jobs.length === 1 && !isLockTimeout(error)) return [asError(error)];
      // A key that somebody's open transaction holds, or a row the database refuses: from here each lock waits for
      // itself, and each row if it must.
      const parts = isLockTimeout(error) ? byLock(jobs) : jobs.map((job) => [job]);
      const done = new Map<NewJob, Promise<Inserted>>();
      const before = new Map<string | undefined, Promise<unknown>>();
      for (const part of parts) {
        // Of one group in the order of the calls, whatever becomes of each.
        const { group } = part[0]!;
        const results = before.get(group)?.then(() => patiently(part)) ?? patiently(part);
        if (group !== undefined) before.set(group, results.then(nothing, nothing));
        for (const [index, job] of part.entries()) done.set(job, pick(results, index));
      }
      return jobs.map((job) => done.get(job)!);
    }
  }

  /** Waits for a lock by coming back, so that nobody's open transaction keeps our connections. */
  async function patiently(jobs: NewJob[]): Promise<(Inserted | Error)[]> {
    const until = performance.now() + PATIENCE_MS;
    for (;;) {
      try {
        return await waiting.add(jobs);
      } catch (error) {
        if (isConnectionTrouble(error)) return jobs.map((job) => unknownOutcome(job, error));
        if (!isLockTimeout(error) && jobs.length === 1) throw error;
        if (!isLockTimeout(error)) return await oneByOne(jobs);
        if (performance.now() > until) return jobs.map((job) => lockedOutcome(job, error));
        await sleep(jitter(100));
      }
    }
  }

  /** One of them is refused. */
  async function oneByOne(jobs: NewJob[]): Promise<(Inserted | Error)[]> {
    const results: (Inserted | Error)[] = [];
    for (const job of jobs) results.push((await patiently([job]).catch((error: unknown) => [asError(error)]))[0]!);
    return results;
  }

  /** Two connections at most wait for locks. */
  const waiting = makeCoalescer<NewJob[], Inserted[]>({
    run: async ([jobs]) => [await insert(jobs!, LOCK_TIMEOUT_MS)],
    maxEntries: 1,
    lanes: 2,
  });

  const weigh = (job: NewJob): number => job.payload.length + 200;
  const plain = makeCoalescer<NewJob, Inserted>({ run, maxEntries: MAX_ROWS, maxWeight: MAX_BYTES, weigh, lanes: 2 });
  const special = makeCoalescer<NewJob, Inserted>({
    run,
    maxEntries: MAX_ROWS,
    maxWeight: MAX_BYTES,
    weigh,
    lanes: 2,
    turnsOf,
  });

  return {
    async enqueue(kind, payload, options) {
      const job = toNewJob(kind, payload, options, undefined);
      if (kind.schema) await checkPayload(kind, job.payload);
      if (options.tx === undefined) store.assertOutside();
      if (options.tx !== undefined) return (await insertJobs(store.on(fromTransaction(options.tx)), [job], null))[0]!;
      const isSpecial = job.key !== undefined || job.group !== undefined || job.coalesceKey !== undefined;
      return await (isSpecial ? special : plain).add(job);
    },
    async enqueueMany(kind, rows, tx) {
      if (!Array.isArray(rows)) throw new OptionInvalid("enqueueMany() got no list of rows.", ROWS_HINT);
      const jobs: NewJob[] = [];
      // Counted, here and wherever each of many jobs passes: entries() makes a list for every one.
      for (let index = 0; index < rows.length; index += 1) {
        const row = rows[index] as EnqueueRow<unknown>;
        if (typeof row !== "object" || row === null) {
          throw new OptionInvalid(`enqueueMany() row ${index} is ${row === null ? "null" : typeof row}.`, ROWS_HINT);
        }
        const job = toNewJob(kind, row.payload, row, index);
        if (kind.schema) await checkPayload(kind, job.payload, index);
        jobs.push(job);
      }
      const results: Inserted[] = [];
      const target = tx === undefined ? undefined : store.on(fromTransaction(tx));
      const keep = (part: NewJob[]): Promise<Inserted[]> =>
        target ? insertJobs(target, part, null) : insert(part, PATIENCE_MS);
      for (const chunk of chunks(jobs)) {
        if (!chunk.some((job) => job.coalesceKey !== undefined)) {
          for (const done of await keep(chunk)) results.push(done);
          continue;
        }
        const { first, rest } = splitRepeated(chunk);
        const byJob = new Map<NewJob, Inserted>();
        // Rows with a coalesce key that already stands in the statement follow one by one: the newest payload wins.
        for (const part of [first, ...rest.map((job) => [job])]) {
          const done = await keep(part);
          for (const [index, job] of part.entries()) byJob.set(job, done[index]!);
        }
        for (const job of chunk) results.push(byJob.get(job)!);
      }
      return results;
    },
    async idle() {
      await plain.idle();
      await special.idle();
    },
  };
}

/** Puts what an earlier try had stored back in its place among what this one inserted. */
function withKnown(jobs: readonly NewJob[], known: ReadonlySet<string>, inserted: readonly Inserted[]): Inserted[] {
  const rest = inserted.values();
  return jobs.map((job) => (known.has(job.id) ? { id: job.id, ...STORED } : rest.next().value!));
}

/** A group is in the order of the calls, and so is a coalesce key, which may stand only once in a statement. */
function turnsOf({ kind, group, coalesceKey }: NewJob): Turn[] {
  const turns: Turn[] = [];
  if (group !== undefined) turns.push({ name: `group ${group}` });
  if (coalesceKey !== undefined) turns.push({ name: `coalesce ${kind} ${coalesceKey}`, isAlone: true });
  return turns;
}

const nothing = (): void => {};
const asError = (error: unknown): Error => (error instanceof Error ? error : new Error(String(error)));

function unknownOutcome(job: NewJob, cause: unknown): DatabaseUnavailable {
  return new DatabaseUnavailable(
    `The database did not confirm the enqueue of ${job.kind} (id ${job.id}): it may or may not have been stored.`,
    job.key === undefined
      ? "Enqueue again with a key to be safe against doubles, or look the id up first."
      : "Enqueue again with the same key: it cannot become two jobs.",
    { cause },
  );
}

/** Jobs that wait for the same lock go together, and those of a group stay together. */
function byLock(jobs: readonly NewJob[]): NewJob[][] {
  const parts = new Map<string, NewJob[]>();
  for (const job of jobs) {
    const lock = JSON.stringify(job.group === undefined ? [job.kind, job.key, job.coalesceKey] : job.group);
    const part = parts.get(lock);
    if (part) part.push(job);
    else parts.set(lock, [job]);
  }
  return [...parts.values()];
}

async function pick(results: Promise<(Inserted | Error)[]>, index: number): Promise<Inserted> {
  const result = (await results)[index]!;
  if (result instanceof Error) throw result;
  return result;
}

function splitRepeated(jobs: readonly NewJob[]): { first: NewJob[]; rest: NewJob[] } {
  const seen = new Set<string>();
  const first: NewJob[] = [];
  const rest: NewJob[] = [];
  for (const job of jobs) {
    const key = job.coalesceKey === undefined ? undefined : `${job.kind}\0${job.coalesceKey}`;
    if (key !== undefined && seen.has(key)) rest.push(job);
    else first.push(job);
    if (key !== undefined) seen.add(key);
  }
  return { first, rest };
}

function* chunks(jobs: readonly NewJob[]): Generator<NewJob[]> {
  let chunk: NewJob[] = [];
  let bytes = 0;
  for (const job of jobs) {
    if (chunk.length > 0 && (chunk.length >= MANY_ROWS || bytes + job.payload.length > MAX_BYTES)) {
      yield chunk;
      chunk = [];
      bytes = 0;
    }
    chunk.push(job);
    bytes += job.payload.length + 200;
  }
  if (chunk.length > 0) yield chunk;
}

function lockedOutcome(job: NewJob, cause: unknown): StateConflict {
  const what = job.key === undefined ? "group or coalesce key" : "key";
  return new StateConflict(
    `The ${what} of this ${job.kind} is held by a transaction that has not ended; the job was not stored.`,
    "Enqueue again; and keep transactions that enqueue short.",
    { cause },
  );
}
