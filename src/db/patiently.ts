// A row may be locked by somebody's open transaction for a moment: that is worth a short wait, not an error.
import { StateConflict } from "../errors.ts";
import { sleep } from "../shared/sleep.ts";
import { isLockTimeout, isRetryable } from "./retryable.ts";

/** Does it again, with longer and longer pauses, until it works. `what` is named when that takes too long. */
export async function patiently<T>(
  what: string,
  { tries, pauseMs }: { tries: number; pauseMs: (failed: number) => number },
  work: () => Promise<T>,
): Promise<T> {
  for (let failed = 0; ; failed += 1) {
    try {
      return await work();
    } catch (error) {
      if (!isLockTimeout(error) && !isRetryable(error)) throw error;
      if (failed >= tries) {
        throw new StateConflict(`${what} is locked by a transaction that does not end.`, "Try again later.", {
          cause: error,
        });
      }
      await sleep(pauseMs(failed));
    }
  }
}
