// The time that one call has. `expired` rejects when it is over; what it says depends on how far the call had come.
import { DatabaseUnavailable } from "../errors.ts";
import { formatDuration } from "../shared/duration.ts";

export type Phase = "waiting" | "running" | "committing";

const SAYS: Record<Phase, [what: string, hint: string]> = {
  waiting: [
    "The embedded database had no turn for this call",
    "It serves one transaction at a time: look for one that is long, or allow the call more time (timeoutMs).",
  ],
  running: [
    "The embedded database did not finish this call",
    "The statement cannot be interrupted and goes on; whether it took effect is unknown. Allow the call more time (timeoutMs).",
  ],
  committing: [
    "The embedded database did not confirm the COMMIT",
    "Whether the transaction took effect is unknown: look before doing it again.",
  ],
};

/** setTimeout turns anything longer into 1 ms. */
const LONGEST_MS = 2_147_483_647;

export class Deadline {
  phase: Phase = "waiting";
  over = false;
  readonly expired: Promise<never>;
  #timer: NodeJS.Timeout | undefined;

  constructor(timeoutMs: number) {
    this.expired = new Promise((_, reject) => {
      this.#timer = setTimeout(
        () => {
          this.over = true;
          const [what, hint] = SAYS[this.phase];
          reject(new DatabaseUnavailable(`${what} within ${formatDuration(timeoutMs)}.`, hint));
        },
        Math.min(timeoutMs, LONGEST_MS),
      );
    });
    this.expired.catch(() => {});
  }

  clear(): void {
    clearTimeout(this.#timer);
  }
}
