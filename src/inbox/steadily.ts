// A statement that may be sent again, sent again while the database is away for a moment.
import { isConnectionTrouble, isRetryable } from "../db/retryable.ts";
import { jitter, sleep } from "../shared/sleep.ts";

const PAUSES_MS = [50, 250, 1_000, 2_500];

export async function steadily<T>(statement: () => Promise<T>): Promise<T> {
  for (let tries = 0; ; tries += 1) {
    try {
      return await statement();
    } catch (error) {
      if (tries >= PAUSES_MS.length || !(isConnectionTrouble(error) || isRetryable(error))) throw error;
      await sleep(jitter(PAUSES_MS[tries]!));
    }
  }
}
