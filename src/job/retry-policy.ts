// attempt → how long to wait before the next one. Pure; randomness is handed in.
import { OptionInvalid } from "../errors.ts";
import { durationMs, type Duration } from "../shared/duration.ts";
import { refuseUnknown } from "../shared/refuse-unknown.ts";

/** A ladder (its last rung repeats), or exponential: base · factor^(attempt-1), capped, plus or minus jitter. */
export type Backoff = readonly Duration[] | { base: Duration; factor?: number; cap?: Duration; jitter?: number };

export interface RetryPolicy {
  /** `attempt` is the one that just failed, counted from 1. */
  delayMs(attempt: number, random?: () => number): number;
}

export const DEFAULT_BACKOFF = ["30s", "2m", "10m", "1h"] as const satisfies Backoff;

export function makeRetryPolicy(name: string, backoff: Backoff): RetryPolicy {
  if (Array.isArray(backoff)) {
    if (backoff.length === 0) {
      throw new OptionInvalid(`${name} is an empty ladder.`, 'Give at least one rung, such as ["30s"].');
    }
    const rungs = backoff.map((rung, index) => durationMs(`${name}[${index}]`, rung));
    return { delayMs: (attempt) => rungs[Math.min(Math.max(attempt, 1), rungs.length) - 1]! };
  }
  if (backoff === null || typeof backoff !== "object") {
    throw new OptionInvalid(
      `${name} is ${JSON.stringify(backoff)}.`,
      'Give a ladder such as ["30s", "2m"] or { base: "1s", factor: 2, cap: "1h", jitter: 0.1 }.',
    );
  }
  refuseUnknown(name, backoff, ["base", "factor", "cap", "jitter"]);
  const { base, factor = 2, cap = "1h", jitter = 0.1 } = backoff as Exclude<Backoff, readonly Duration[]>;
  const baseMs = durationMs(`${name}.base`, base);
  const capMs = durationMs(`${name}.cap`, cap);
  if (!(factor >= 1 && factor <= 100)) {
    throw new OptionInvalid(`${name}.factor is ${String(factor)}.`, "Give a number from 1 to 100.");
  }
  if (!(jitter >= 0 && jitter <= 1)) {
    throw new OptionInvalid(`${name}.jitter is ${String(jitter)}.`, "Give a share from 0 (none) to 1.");
  }
  return {
    delayMs(attempt, random = Math.random) {
      const plain = Math.min(capMs, baseMs * factor ** (Math.max(attempt, 1) - 1));
      return Math.round(plain * (1 + jitter * (2 * random() - 1)));
    },
  };
}
