// runDue(): runs everything that is due, and what becomes due by that, until nothing is.
import { OptionInvalid, WaitTimeout } from "../errors.ts";
import type { AnyJobKind } from "../job/define-job.ts";
import { durationMs, type Duration } from "../shared/duration.ts";
import { defined } from "../shared/defined.ts";
import { makeAlarm } from "../shared/sleep.ts";
import { countDue } from "../store/stats/count-due.ts";
import { partsOf, type TestHoldfast } from "./open-test.ts";

/** How `runDue` runs, and when it gives up. */
export interface RunDueOptions {
  /** How many run at once. One by default: a test wants an order it can rely on. */
  concurrency?: number;
  timeout?: Duration;
  /** So many runs and still something due: a job that always comes back. */
  maxRuns?: number;
}

/** How the runs ended. */
export interface DueRuns {
  runs: number;
  done: number;
  retrying: number;
  snoozed: number;
  dead: number;
  cancelled: number;
}

export const RUN_DUE_DEFAULTS = { concurrency: 1, timeout: "30s", maxRuns: 10_000 } as const satisfies RunDueOptions;

const LOOK_EVERY_MS = 50;

/** Runs everything that is due, and what becomes due by that, until nothing is. */
export async function runDue(
  hf: TestHoldfast,
  kinds: readonly AnyJobKind[],
  options: RunDueOptions = {},
): Promise<DueRuns> {
  const { concurrency, timeout, maxRuns } = { ...RUN_DUE_DEFAULTS, ...defined(options) };
  const { store } = partsOf(hf);
  const until = performance.now() + durationMs("runDue() timeout", timeout);
  if (!Number.isInteger(maxRuns) || maxRuns < 1) {
    throw new OptionInvalid(`runDue() maxRuns is ${String(maxRuns)}.`, "Give a whole number of at least 1.");
  }
  const names = kinds.map((kind) => kind.kind);
  const ended: DueRuns = { runs: 0, done: 0, retrying: 0, snoozed: 0, dead: 0, cancelled: 0 };
  const alarm = makeAlarm();
  const counting = (
    [
      ["job.claimed", "runs"],
      ["job.done", "done"],
      ["job.retrying", "retrying"],
      ["job.snoozed", "snoozed"],
      ["job.dead", "dead"],
      ["job.cancelled", "cancelled"],
    ] as const
  ).map(([event, count]) =>
    hf.on(event, ({ kind }) => {
      if (!names.includes(kind)) return;
      ended[count] += 1;
      if (count !== "runs") alarm.ring();
    }),
  );
  // When it ends well nothing runs any more; when it gives up there is nothing to wait for.
  const worker = await hf.work(kinds, { concurrency, poll: "20ms", grace: "0s", abortGrace: "1s", name: "runDue" });
  try {
    for (let due = await countDue(store, names, 1_000); due > 0; due = await countDue(store, names, 1_000)) {
      const isOverdue = performance.now() >= until;
      if (isOverdue || ended.runs > maxRuns) {
        throw new WaitTimeout(
          `runDue() gave up after ${isOverdue ? timeout : `${ended.runs} runs`}: ${due} jobs are still due or running.`,
          "Look for a handler that does not end, or for a job that always comes back.",
        );
      }
      await alarm.wait(LOOK_EVERY_MS);
    }
  } finally {
    await worker.stop();
    for (const stop of counting) stop();
  }
  return ended;
}
