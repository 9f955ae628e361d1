// Looks over HTTP again and again until something is over. A server that is away for a moment (a restart) is waited for.
import { sleep } from "../shared/sleep.ts";
import { EXIT } from "./exit-codes.ts";
import { Problem } from "./problem.ts";
import { Unanswered } from "./requests.ts";

export interface KeepLookingInput<Seen> {
  look(): Promise<Seen>;
  isOver(seen: Seen): boolean;
  timeoutMs: number;
  /** What is thrown when that has passed. */
  tooLate(last: Seen | undefined): Problem;
  mostPauseMs: number;
}

const FIRST_PAUSE_MS = 30;
const SERVER_MAY_BE_AWAY_MS = 30_000;

export async function keepLooking<Seen>(input: KeepLookingInput<Seen>): Promise<Seen> {
  const { look, isOver, timeoutMs, tooLate, mostPauseMs } = input;
  const startedAt = performance.now();
  let lastSeenAt = startedAt;
  let last: Seen | undefined;
  for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(pause * 1.5, mostPauseMs)) {
    try {
      last = await look();
      lastSeenAt = performance.now();
      if (isOver(last)) return last;
    } catch (error) {
      const isAway = error instanceof Unanswered || (error instanceof Problem && error.exitCode === EXIT.temporary);
      if (!isAway || performance.now() - lastSeenAt > SERVER_MAY_BE_AWAY_MS) throw error;
    }
    const left = timeoutMs - (performance.now() - startedAt);
    if (left <= 0) throw tooLate(last);
    await sleep(Math.min(pause, left));
  }
}
