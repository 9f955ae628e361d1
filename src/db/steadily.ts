// A statement that may be sent again, sent again while the database is away for a moment.
import { jitter, sleep } from "../shared/sleep.ts";
import { isConnectionTrouble, isRetryable } from "./retryable.ts";

const PAUSES_MS = [50, 250, 1_000, 2_500];

/** As often as there are pauses; then what it failed with is thrown. */
export async function steadily<T>(work: () => Promise<T>, pausesMs: readonly number[] = PAUSES_MS): Promise<T> {
  for (let tries = 0; ; tries += 1) {
    try {
      return await work();
    } catch (error) {
      if (tries >= pausesMs.length || !(isConnectionTrouble(error) || isRetryable(error))) throw error;
      await sleep(jitter(pausesMs[tries]!));
    }
  }
}
