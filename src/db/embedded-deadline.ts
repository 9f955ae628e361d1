// The time that one call has. `expired` rejects when it is over; what it says depends on how far the call had come.
import { DatabaseUnavailable } from "../errors.ts";
import { formatDuration } from "../shared/duration.ts";
import { startDeadline } from "./deadline.ts";

export type Phase = "waiting" | "running" | "in transaction" | "committing";

const SAYS: Record<Phase, [what: string, hint: string]> = {
  waiting: [
    "The embedded database had no turn for this call",
    "It serves one transaction at a time: look for one that is long, or give the call more time (timeoutMs).",
  ],
  running: [
    "The embedded database did not finish this call",
    "Whether the statement took effect is unknown. Give the call more time (timeoutMs), or make it do less.",
  ],
  "in transaction": [
    "The embedded database rolled a transaction back: a statement was not finished",
    "Give the transaction more time (timeoutMs), or make its statements do less.",
  ],
  committing: [
    "The embedded database did not confirm the COMMIT",
    "Whether the transaction took effect is unknown: look before doing it again.",
  ],
};

export class Deadline {
  phase: Phase;
  over = false;
  readonly expired: Promise<never>;
  /** The call is settled, or has no more use for it. */
  clear: () => void = () => {};

  constructor(timeoutMs: number, phase: Phase) {
    this.phase = phase;
    this.expired = new Promise((_, reject) => {
      this.clear = startDeadline(timeoutMs, () => {
        this.over = true;
        const [what, hint] = SAYS[this.phase];
        reject(new DatabaseUnavailable(`${what} within ${formatDuration(timeoutMs)}.`, hint));
      });
    });
    this.expired.catch(() => {});
  }
}
