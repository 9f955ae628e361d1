// The clock of a test: moves the database's, and tells the workers to look again.
import { OptionInvalid } from "../errors.ts";
import { durationMs, type Duration } from "../shared/duration.ts";
import { makePartitions } from "../store/janitor/partitions.ts";
import { databaseNow } from "../store/stats/database-clock.ts";
import { moveClock } from "../store/stats/move-clock.ts";
import type { Store } from "../store/sql.ts";

/** It goes on ticking after each move. Each answers with the new time. */
export interface TestClock {
  now(): Promise<Date>;
  advance(by: Duration): Promise<Date>;
  rewind(by: Duration): Promise<Date>;
  set(to: Date | string): Promise<Date>;
}

export function makeTestClock(store: Store, wake: () => void): TestClock {
  let last: Promise<unknown> = Promise.resolve();

  /** One move at a time: two replacements of one function at the same moment would refuse each other. */
  function move(byMs: () => Promise<number> | number): Promise<Date> {
    const moved = last.then(async () => {
      await moveClock(store, await byMs());
      // The day may be another: finishing a job needs its partition.
      await makePartitions(store);
      wake();
      return await databaseNow(store);
    });
    last = moved.catch(() => undefined);
    return moved;
  }

  return {
    now: () => databaseNow(store),
    advance: (by) => move(() => durationMs("clock.advance()", by)),
    rewind: (by) => move(() => -durationMs("clock.rewind()", by)),
    set(to) {
      const at = new Date(to);
      if (Number.isNaN(at.getTime())) {
        return Promise.reject(
          new OptionInvalid(`The clock cannot be set to ${String(to)}.`, "Give a Date or an ISO 8601 text."),
        );
      }
      return move(async () => at.getTime() - (await databaseNow(store)).getTime());
    },
  };
}
