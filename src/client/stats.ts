// hf.stats: figures over time, from the roll-ups. Nothing is counted when somebody asks.
import { OptionInvalid } from "../errors.ts";
import { type DepthPoint, depthSeries } from "../store/stats/depths.ts";
import { kindFigures, latencySeries, type RunPoint, runSeries } from "../store/stats/run-counts.ts";
import type { Store } from "../store/sql.ts";

/** Which time, and which queue. */
export interface StatsOptions {
  /** An hour ago, if not given. */
  from?: Date | undefined;
  /** Now, if not given. */
  to?: Date | undefined;
  queue?: string | undefined;
}

/** `hf.stats`: what runs came to over time, from roll-ups; nothing is counted when asked. */
export interface Stats {
  /** What runs came to, by minute; by hour when more than two days are asked for. */
  runs(options?: StatsOptions): Promise<RunPoint[]>;
  /** How deep the queues were, by minute. A queue keeps its last value until its next point. */
  depths(options?: StatsOptions): Promise<DepthPoint[]>;
  /** How long jobs waited and ran, as quantiles, in about sixty steps. */
  latency(options?: StatsOptions): Promise<Latency[]>;
  /** What each kind came to in that time. */
  kinds(options?: StatsOptions): Promise<KindStats[]>;
}

/** In milliseconds, within about a third of the true value; null: nothing ran. */
export interface Quantiles {
  waitP50: number | null;
  waitP95: number | null;
  runP50: number | null;
  runP95: number | null;
}

export interface Latency extends Quantiles {
  at: Date;
}

export interface KindStats extends Quantiles {
  queue: string;
  kind: string;
  runs: number;
  /** Attempts that failed. */
  failures: number;
  deaths: number;
}

const MOST_POINTS = 50_000;
const STEPS = 60;
/** Minutes are read for this long a time; hours for a longer one. */
const MINUTES_FOR_MS = 6 * 3_600_000;
const TWO_DAYS_MS = 2 * 86_400_000;

export function makeStats(store: Store): Stats {
  return {
    runs(options) {
      const { from, to, queue } = range(options);
      const width = to.getTime() - from.getTime() > TWO_DAYS_MS ? 3_600 : 60;
      return runSeries(store, { from, to, queue, limit: MOST_POINTS, width });
    },
    depths(options) {
      return depthSeries(store, { ...range(options), limit: MOST_POINTS });
    },
    async latency(options) {
      const asked = range(options);
      const seconds = (asked.to.getTime() - asked.from.getTime()) / 1_000;
      const width = widthFor(asked);
      const stepSeconds = width * Math.ceil(seconds / STEPS / width);
      const points = await latencySeries(store, { ...asked, width, stepSeconds, limit: MOST_POINTS });
      return points.map(({ at, waits, durations }) => ({ at, ...quantiles(waits, durations) }));
    },
    async kinds(options) {
      const asked = range(options);
      const figures = await kindFigures(store, { ...asked, width: widthFor(asked), limit: MOST_POINTS });
      return figures.map(({ waits, durations, ...rest }) => ({ ...rest, ...quantiles(waits, durations) }));
    },
  };
}

function range({ from, to = new Date(), queue }: StatsOptions = {}): { from: Date; to: Date; queue: string | null } {
  const begin = from ?? new Date(to.getTime() - 3_600_000);
  for (const [name, date] of Object.entries({ from: begin, to })) {
    if (!(date instanceof Date) || Number.isNaN(date.getTime())) {
      throw new OptionInvalid(`stats: ${name} is not a date.`, "Give a Date.");
    }
  }
  if (begin >= to) throw new OptionInvalid("stats: from is not before to.", "Give a from that is before to.");
  return { from: begin, to, queue: queue ?? null };
}

function widthFor({ from, to }: { from: Date; to: Date }): 60 | 3600 {
  return to.getTime() - from.getTime() > MINUTES_FOR_MS ? 3_600 : 60;
}

function quantiles(waits: readonly number[], durations: readonly number[]): Quantiles {
  return {
    waitP50: quantile(waits, 0.5),
    waitP95: quantile(waits, 0.95),
    runP50: quantile(durations, 0.5),
    runP95: quantile(durations, 0.95),
  };
}

/** From classes that double: the place inside the class is taken to be even. */
export function quantile(classes: readonly number[], part: number): number | null {
  const all = classes.reduce((sum, count) => sum + count, 0);
  if (all === 0) return null;
  let left = part * all;
  for (const [n, count] of classes.entries()) {
    if (count >= left && count > 0) {
      const [low, high] = n === 0 ? [0, 1] : [2 ** (n - 1), 2 ** n];
      return Math.round(low + (high - low) * (left / count));
    }
    left -= count;
  }
  return 2 ** classes.length;
}
