// Chance that can be repeated: the same seed gives the same run of numbers. Good enough to choose faults with.

export interface Random {
  /** From 0 up to, and without, 1. */
  (): number;
  /** A whole number from `least` to `most`, both included. */
  whole(least: number, most: number): number;
  pick<T>(list: readonly T[]): T;
  /** True so often. */
  chance(share: number): boolean;
  shuffled<T>(list: readonly T[]): T[];
}

export function makeRandom(seed: number): Random {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const whole = (least: number, most: number): number => least + Math.floor(next() * (most - least + 1));
  return Object.assign(next, {
    whole,
    pick: <T>(list: readonly T[]): T => list[whole(0, list.length - 1)]!,
    chance: (share: number): boolean => next() < share,
    shuffled<T>(list: readonly T[]): T[] {
      const mixed = [...list];
      for (let at = mixed.length - 1; at > 0; at -= 1) {
        const other = whole(0, at);
        [mixed[at], mixed[other]] = [mixed[other]!, mixed[at]!];
      }
      return mixed;
    },
  });
}

/** The seed that was asked for, or one of its own. */
export const seedFrom = (given: string | undefined): number =>
  given === undefined || given === "" ? Math.floor(Math.random() * 2 ** 31) : Number(given);
