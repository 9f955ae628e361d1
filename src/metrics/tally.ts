// Counts what runs came to, by queue, kind and outcome, as plain numbers: it is called for every job and must cost next to
// nothing. The roll-ups take the figures.

export interface TallyRow {
  queue: string;
  kind: string;
  outcome: string;
  runs: number;
  waitMs: number;
  runMs: number;
  /** How many waited, and ran, for how long: see durationClass(). */
  waits: number[];
  durations: number[];
}

const CLASSES = 32;

/** 0: none. n: less than 2^n ms, and not less than half of that. */
const durationClass = (ms: number): number => 32 - Math.clz32(Math.min(ms, 2 ** 31 - 1));

export interface Tally {
  count(queue: string, kind: string, outcome: string, waitMs: number, runMs: number): void;
  /** What was counted since it was last taken. */
  take(): TallyRow[];
  /** It could not be stored: add it again. */
  putBack(rows: readonly TallyRow[]): void;
}

export function makeTally(): Tally {
  let rows = new Map<string, TallyRow[]>();

  function rowOf(queue: string, kind: string, outcome: string): TallyRow {
    let ofKind = rows.get(kind);
    if (!ofKind) rows.set(kind, (ofKind = []));
    // A kind has few outcomes, and most often one queue.
    for (const row of ofKind) if (row.outcome === outcome && row.queue === queue) return row;
    const made: TallyRow = {
      queue,
      kind,
      outcome,
      runs: 0,
      waitMs: 0,
      runMs: 0,
      waits: Array.from({ length: CLASSES }, () => 0),
      durations: Array.from({ length: CLASSES }, () => 0),
    };
    ofKind.push(made);
    return made;
  }

  return {
    count(queue, kind, outcome, waitMs, runMs) {
      const row = rowOf(queue, kind, outcome);
      row.runs += 1;
      row.waitMs += waitMs;
      row.runMs += runMs;
      row.waits[durationClass(waitMs)]! += 1;
      row.durations[durationClass(runMs)]! += 1;
    },
    take() {
      const taken = [...rows.values()].flat().filter((row) => row.runs > 0);
      rows = new Map();
      return taken;
    },
    putBack(back) {
      for (const { queue, kind, outcome, runs, waitMs, runMs, waits, durations } of back) {
        const row = rowOf(queue, kind, outcome);
        row.runs += runs;
        row.waitMs += waitMs;
        row.runMs += runMs;
        for (let n = 0; n < CLASSES; n += 1) {
          row.waits[n]! += waits[n]!;
          row.durations[n]! += durations[n]!;
        }
      }
    },
  };
}
