// defineChore(name, options): one thing that the janitor does, in bounded steps. This is the door for every room that has
// something to clean up, and for apps: the janitor adds whose turn it is, the deadline, the history and the counting.
//
// A chore is done by one process at a time, but must be safe if two do it: a process that was frozen may wake up in the
// middle of a run that another took over.
import { OptionInvalid } from "../errors.ts";
import { durationMs, type Duration } from "../shared/duration.ts";
import { refuseUnknown } from "../shared/refuse-unknown.ts";

/** What a chore is given for one run. */
export interface ChoreContext {
  /** Aborted when the deadline has passed, when another process took the chore over, and when this one stops. */
  readonly signal: AbortSignal;
  /** As many rows as one statement should touch. Smaller than what was asked for while statements take long. */
  readonly batchSize: number;
  /** False when the time budget of this run is used up: leave the rest to the next run. */
  hasTime(): boolean;
  /** So many rows came to this end ("expired", "acked"): for the history, the log line and the counters. */
  count(outcome: string, rows: number): void;
  /**
   * Repeats `step(limit)` while it changes as many rows as it was allowed, within the time budget, resting between two
   * for three times as long as the last one took. `step` is one statement; it returns how many rows it changed. What it changes is
   * counted under `outcome`; if something is left, the next run comes soon.
   */
  inBatches(outcome: string, step: (limit: number) => Promise<BatchAnswer>): Promise<number>;
}

/**
 * How many rows a step changed; and, where that does not tell whether something is left, whether to go on. With rows by
 * outcome, these are counted instead.
 */
export type BatchAnswer = number | { rows: number | Readonly<Record<string, number>>; more: boolean };

export interface ChorePreviewContext {
  readonly signal: AbortSignal;
  /** Counting further than this is not needed. */
  readonly limit: number;
}

/** What a chore may say at its end: when it wants to run next, if not after its interval; that something is left. */
export type ChoreAnswer = { nextInMs?: number | undefined; more?: boolean | undefined } | undefined | void;

/** What `defineChore` takes. */
export interface ChoreOptions {
  every: Duration;
  /** A run that takes longer is abandoned and counts as failed. */
  deadline?: Duration;
  /** Rows per statement. */
  batchSize?: number;
  /** How long a run goes on taking batches. */
  budget?: Duration;
  /** Runs in every process, at the same time if need be, instead of in one at a time. */
  everywhere?: boolean;
  run(context: ChoreContext): Promise<ChoreAnswer> | ChoreAnswer;
  /** What a run would remove, by outcome, without touching it. */
  preview?(context: ChorePreviewContext): Promise<Record<string, number>>;
}

/** What `defineChore` gives. */
export interface Chore {
  readonly name: string;
  readonly everyMs: number;
  readonly deadlineMs: number;
  readonly batchSize: number;
  readonly budgetMs: number;
  readonly everywhere: boolean;
  run(context: ChoreContext): Promise<ChoreAnswer> | ChoreAnswer;
  readonly preview: ((context: ChorePreviewContext) => Promise<Record<string, number>>) | undefined;
}

const KNOWN = ["every", "deadline", "batchSize", "budget", "everywhere", "run", "preview"];
/** It is a label in metrics and part of addresses. */
const NAME_FORM = /^[a-z][a-z0-9-]{0,62}$/;

export const CHORE_DEFAULTS = { deadline: "30s", batchSize: 1_000, budget: "5s", everywhere: false } as const;

/** A chore of your own for the janitor: `hf.janitor.add(chore)`, or `chores` of an app. */
export function defineChore(name: string, options: ChoreOptions): Chore {
  if (typeof name !== "string" || !NAME_FORM.test(name)) {
    throw new OptionInvalid(
      `The chore is named ${JSON.stringify(name)}.`,
      "Use 1 to 63 lower-case letters, digits and -, and start with a letter.",
    );
  }
  const where = `defineChore("${name}")`;
  if (options === null || typeof options !== "object") {
    throw new OptionInvalid(`${where} got no options.`, "Give at least { every, run }.");
  }
  refuseUnknown(where, options, KNOWN);
  const { batchSize = CHORE_DEFAULTS.batchSize, everywhere = CHORE_DEFAULTS.everywhere, run, preview } = options;
  if (typeof run !== "function") {
    throw new OptionInvalid(`${where}.run is not a function.`, "Give what it does: async run(context) { … }.");
  }
  if (preview !== undefined && typeof preview !== "function") {
    throw new OptionInvalid(`${where}.preview is not a function.`, "Leave it out, or let it count what run() removes.");
  }
  if (!Number.isInteger(batchSize) || batchSize < 1 || batchSize > 100_000) {
    throw new OptionInvalid(`${where}.batchSize is ${String(batchSize)}.`, "Give a whole number from 1 to 100000.");
  }
  const time = (option: "every" | "deadline" | "budget", value: unknown): number => {
    const ms = durationMs(`${where}.${option}`, value);
    if (ms >= 10) return ms;
    throw new OptionInvalid(`${where}.${option} is ${JSON.stringify(value)}.`, 'Give at least "10ms".');
  };
  const deadlineMs = time("deadline", options.deadline ?? CHORE_DEFAULTS.deadline);
  const budgetMs =
    options.budget === undefined
      ? Math.min(time("budget", CHORE_DEFAULTS.budget), deadlineMs / 2)
      : time("budget", options.budget);
  if (budgetMs >= deadlineMs) {
    throw new OptionInvalid(
      `${where}.budget is ${String(options.budget)}, and its deadline ${deadlineMs} ms.`,
      "A run stops taking batches at its budget, and is abandoned at its deadline: make the budget shorter.",
    );
  }
  return Object.freeze({
    name,
    everyMs: time("every", options.every),
    deadlineMs,
    batchSize,
    budgetMs,
    everywhere,
    run,
    preview,
  });
}
