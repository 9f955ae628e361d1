// Statements about runs that have ended, tried until the database answers: with it away, a finished run waits here, and its
// lease decides its fate.
import { isLockTimeout, isPassing } from "../db/retryable.ts";
import { type Outcome, recordError } from "../job/outcome.ts";
import { toStorableJson } from "../job/storable.ts";
import { jitter, sleep } from "../shared/sleep.ts";
import { isMissingPartition, makePartitions } from "../store/janitor/partitions.ts";
import type { Store } from "../store/sql.ts";
import type { Run } from "./run.ts";

export interface Persistence {
  /** undefined: somebody holds a lock for long. Throws what the database will always refuse, or when it is given up on. */
  persist<T>(work: () => Promise<T>, longestPauseMs: number): Promise<T | undefined>;
  /** From now on an unreachable database is given up on after `ms`. */
  giveUpAfter(ms: number): void;
  isGivenUp(): boolean;
}

const MOST_REFUSALS = 5;

export function makePersistence(store: Store, onTrouble: (error: unknown) => void): Persistence {
  let giveUpAt = Infinity;
  const isGivenUp = (): boolean => performance.now() > giveUpAt;
  return {
    isGivenUp,
    giveUpAfter(ms) {
      giveUpAt = performance.now() + ms;
    },
    async persist(work, longestPauseMs) {
      let refusals = 0;
      for (let pause = 25; ; pause = Math.min(pause * 2, longestPauseMs)) {
        try {
          return await work();
        } catch (error) {
          if (isLockTimeout(error)) return undefined;
          onTrouble(error);
          if (isMissingPartition(error)) await makePartitions(store).catch(onTrouble);
          // What the database refuses again and again it will always refuse.
          if (!isPassing(error) && ++refusals >= MOST_REFUSALS) throw error;
          if (isGivenUp()) throw error;
          await sleep(jitter(pause));
        }
      }
    },
  };
}

/** A result that cannot be kept is the handler's mistake, and the same on every try. `what`: for who reads the error. */
export function keepable(run: Run, outcome: Outcome, result: unknown, what: string): Outcome {
  if (outcome.type !== "done" || result === undefined) return outcome;
  try {
    run.result = toStorableJson(what, result);
    return outcome;
  } catch (error) {
    return { type: "dead", error: recordError(error, "fatal") };
  }
}
