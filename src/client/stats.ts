// hf.stats: figures over time, from the roll-ups. Nothing is counted when somebody asks.
import { OptionInvalid } from "../errors.ts";
import { type DepthPoint, depthSeries } from "../store/stats/depths.ts";
import { type RunPoint, runSeries } from "../store/stats/run-counts.ts";
import type { Store } from "../store/sql.ts";

export interface StatsOptions {
  /** An hour ago, if not given. */
  from?: Date | undefined;
  /** Now, if not given. */
  to?: Date | undefined;
  queue?: string | undefined;
}

export interface Stats {
  /** What runs came to, by minute; by hour when more than two days are asked for. */
  runs(options?: StatsOptions): Promise<RunPoint[]>;
  /** How deep the queues were, by minute. A queue keeps its last value until its next point. */
  depths(options?: StatsOptions): Promise<DepthPoint[]>;
}

const MOST_POINTS = 50_000;
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
