// One run of a chore: take the turn, do it within its deadline, keep the turn alive meanwhile, give it back, write down
// what was done. Nothing that a chore does or fails to do comes out of here but as an answer.
import { performance } from "node:perf_hooks";
import type { BatchAnswer, Chore, ChoreAnswer, ChoreContext } from "../job/define-chore.ts";
import { recordError } from "../job/outcome.ts";
import { cleanText } from "../job/storable.ts";
import type { HoldfastEvents } from "../metrics/events.ts";
import type { Emitter } from "../shared/emitter.ts";
import { sleep } from "../shared/sleep.ts";
import { randomToken } from "../shared/uuid.ts";
import { recordRun } from "../store/janitor/chore-history.ts";
import { endTurn, keepTurn, takeTurn, TURN_MS } from "../store/janitor/chore-turn.ts";
import type { Store } from "../store/sql.ts";

/** What one run of a chore came to. */
export type ChoreResult =
  | { chore: string; ran: true; rows: Record<string, number>; tookMs: number; more: boolean; error: string | null }
  /** Another run has it (`by` says which process), or it is not due. */
  | { chore: string; ran: false; by: string | null };

export interface RunChoreInput {
  store: Store;
  events: Emitter<HoldfastEvents>;
  chore: Chore;
  /** This process, for people. */
  by: string;
  /** Now, even if it is not due. */
  atOnce: boolean;
  /** The process stops. */
  stopping: AbortSignal;
  /** Rows per statement, remembered from run to run. */
  size: BatchSize;
}

export interface RunChoreAnswer {
  result: ChoreResult;
  /** When to ask again. */
  waitMs: number;
}

/** How many rows a statement of this chore may touch, so that none takes long. */
export interface BatchSize {
  now: number;
}

const FIRST_BACKOFF_MS = 1_000;
const LONGEST_BACKOFF_MS = 30_000;
/** Something is left: not at once, so that a backlog does not take the whole database. */
const MORE_AFTER_MS = 1_000;
const STOP_GRACE_MS = 3_000;
/** After a batch, in times of what it took. */
const REST = 3;
const SLOW_MS = 300;
const QUICK_MS = 75;
const MAX_OUTCOMES = 20;

export async function runChore(input: RunChoreInput): Promise<RunChoreAnswer> {
  const { store, chore, by, atOnce } = input;
  const token = chore.everywhere ? null : randomToken();
  let failures = 0;
  if (token !== null) {
    const turn = await takeTurn(store, { chore: chore.name, token, by, atOnce });
    if (!turn.taken) {
      return { result: { chore: chore.name, ran: false, by: turn.by }, waitMs: Math.max(100, turn.inMs) };
    }
    failures = turn.failures;
  }
  const done = await within(input, token);
  const failed = done.error !== null;
  const nextInMs = failed
    ? Math.min(backoffMs(failures), chore.everyMs)
    : Math.min(done.nextInMs ?? (done.more ? MORE_AFTER_MS : spread(chore.everyMs)), chore.everyMs * 1.1);
  await writeDown(input, token, done, nextInMs);
  return {
    result: { chore: chore.name, ran: true, rows: done.rows, tookMs: done.tookMs, more: done.more, error: done.error },
    waitMs: nextInMs,
  };
}

/** How long to wait after so many failures in a row before this one. */
export function backoffMs(failures: number): number {
  return Math.min(FIRST_BACKOFF_MS * 2 ** Math.min(failures, 5), LONGEST_BACKOFF_MS);
}

/** Many chores and many processes must not move in step. */
function spread(ms: number): number {
  return ms * (0.9 + Math.random() * 0.2);
}

interface Done {
  rows: Record<string, number>;
  tookMs: number;
  more: boolean;
  nextInMs: number | undefined;
  error: string | null;
}

/** Runs the chore until it ends, its deadline passes, its turn is lost or the process stops, whichever comes first. */
async function within({ store, chore, events, stopping, size }: RunChoreInput, token: string | null): Promise<Done> {
  const began = performance.now();
  const rows: Record<string, number> = {};
  const ended = new AbortController();
  const state = { more: false };
  const timers: NodeJS.Timeout[] = [];
  const stop = (): void => ended.abort(new Stopped());
  const over = new Promise<never>((_, reject) => {
    const end = (): void => reject(ended.signal.reason as Error);
    ended.signal.addEventListener("abort", () => {
      // At a stop it may finish its statement: the connection is closed next.
      if (stopping.aborted) timers.push(setTimeout(end, STOP_GRACE_MS));
      else end();
    });
  });
  over.catch(() => {});
  timers.push(setTimeout(() => ended.abort(new Abandoned(chore)), chore.deadlineMs));
  if (token !== null) timers.push(keepAlive(store, chore.name, token, () => ended.abort(new TurnLost(chore))));
  stopping.addEventListener("abort", stop, { once: true });
  if (stopping.aborted) stop();
  try {
    const context = makeContext({ chore, size, signal: ended.signal, rows, state, began });
    // Its own promise: what a chore throws before its first await is a failure of the run like any other.
    const run = (async (): Promise<ChoreAnswer> => await chore.run(context))();
    const answer = await Promise.race([run, over]);
    const nextInMs = answer?.nextInMs;
    const more = state.more || answer?.more === true;
    return { rows, more, nextInMs, error: null, tookMs: performance.now() - began };
  } catch (error) {
    const tookMs = performance.now() - began;
    // Cut short by a stop: not a failure, and the rest is for the next one.
    if (error instanceof Stopped || stopping.aborted) {
      return { rows, more: true, nextInMs: 0, error: null, tookMs };
    }
    events.emit("trouble", { where: `janitor: ${chore.name}`, error });
    return { rows, more: false, nextInMs: undefined, error: textOf(error), tookMs };
  } finally {
    for (const timer of timers) clearTimeout(timer);
    stopping.removeEventListener("abort", stop);
    // Whoever was abandoned should not go on, even if it does not listen.
    if (!ended.signal.aborted) ended.abort(new Stopped());
  }
}

function keepAlive(store: Store, chore: string, token: string, onLost: () => void): NodeJS.Timeout {
  return setInterval(() => {
    keepTurn(store, chore, token).then(
      (kept) => kept || onLost(),
      // Unknown, not lost: the next one may get through, and the chore is safe if two do it.
      () => {},
    );
  }, TURN_MS / 3);
}

interface ContextInput {
  chore: Chore;
  size: BatchSize;
  signal: AbortSignal;
  rows: Record<string, number>;
  state: { more: boolean };
  began: number;
}

function makeContext({ chore, size, signal, rows, state, began }: ContextInput): ChoreContext {
  const hasTime = (): boolean => !signal.aborted && performance.now() - began < chore.budgetMs;
  const count = (outcome: string, added: number): void => {
    // An abandoned run is written down already.
    if (signal.aborted || !Number.isFinite(added) || added <= 0) return;
    const name = cleanText(outcome, 60);
    if (!(name in rows) && Object.keys(rows).length >= MAX_OUTCOMES) return;
    rows[name] = (rows[name] ?? 0) + Math.floor(added);
  };
  return {
    signal,
    get batchSize() {
      return size.now;
    },
    hasTime,
    count,
    async inBatches(outcome, step) {
      for (let total = 0; ;) {
        signal.throwIfAborted();
        const limit = size.now;
        const sentAt = performance.now();
        let answer: BatchAnswer;
        try {
          answer = await step(limit);
        } catch (error) {
          // Perhaps it was too much at once; a smaller one may get through where this one never will.
          size.now = Math.max(1, Math.floor(limit / 2));
          throw error;
        }
        const tookMs = performance.now() - sentAt;
        if (tookMs > SLOW_MS) size.now = Math.max(1, Math.floor(limit / 2));
        else if (tookMs < QUICK_MS) size.now = Math.min(chore.batchSize, limit * 2);
        const { rows: changed, more } = typeof answer === "number" ? { rows: answer, more: answer >= limit } : answer;
        const ends = typeof changed === "number" ? { [outcome]: changed } : changed;
        for (const [name, added] of Object.entries(ends)) {
          count(name, added);
          total += added;
        }
        if (!more) return total;
        if (!hasTime()) {
          state.more = true;
          return total;
        }
        // Three quarters of the database's time are for others.
        await sleep(REST * tookMs);
      }
    },
  };
}

async function writeDown(input: RunChoreInput, token: string | null, done: Done, nextInMs: number): Promise<void> {
  const { store, chore, events, by } = input;
  const { rows, error, tookMs } = done;
  events.emit("chore.ran", { chore: chore.name, rows, tookMs, error: error ?? undefined });
  try {
    if (token !== null) await endTurn(store, { chore: chore.name, token, nextInMs, error });
    if (error !== null || Object.keys(rows).length > 0) {
      await recordRun(store, { chore: chore.name, tookMs, rows, error, by });
    }
  } catch (trouble) {
    // The turn runs out by itself.
    events.emit("trouble", { where: `janitor: ${chore.name}`, error: trouble });
  }
}

function textOf(error: unknown): string {
  const { name, message } = recordError(error);
  return cleanText(name === "Error" ? message : `${name}: ${message}`, 1_000);
}

class Stopped extends Error {
  override readonly name = "Stopped";
}

class Abandoned extends Error {
  override readonly name = "Abandoned";
  constructor(chore: Chore) {
    super(`It was not finished after its deadline of ${chore.deadlineMs} ms, and was abandoned.`);
  }
}

class TurnLost extends Error {
  override readonly name = "TurnLost";
  constructor(chore: Chore) {
    super(`Another process runs ${chore.name} now: this one was not heard of for ${TURN_MS} ms.`);
  }
}
