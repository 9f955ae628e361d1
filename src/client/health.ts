// hf.health: is the process alive, is the whole well. The first asks nobody; the second asks the database for roll-ups.
import type { Loop, Pulse, Pulses } from "../shared/pulse.ts";
import { choreStates } from "../store/stats/gauges.ts";
import { databaseNow } from "../store/stats/database-clock.ts";
import type { Store } from "../store/sql.ts";
import type { Queues } from "./queues.ts";

/** Whether the background loops of this process go on. */
export interface LiveReport {
  isAlive: boolean;
  /** Background loops of this process that should have been heard of. */
  stopped: string[];
}

/** How the whole is, check by check. */
export interface HealthReport extends LiveReport {
  /**
   * healthy: nothing waits. working: something does, and is being done. stalled: a queue's oldest job has been due for
   * five minutes. degraded: a loop stopped, or a chore keeps failing.
   */
  health: "healthy" | "working" | "stalled" | "degraded";
  stalledQueues: string[];
  failingChores: { chore: string; failures: number; error: string | null }[];
}

/** `hf.health`: whether this process is alive, and how the whole is. */
export interface HealthCheck {
  live(): LiveReport;
  /** Every background loop of this process, and when it was last heard of. */
  loops(): Loop[];
  /** A background loop of your own, which /livez is to name if it stops: `beat(nextInMs)` in every turn, `end()` at its end. */
  register(loop: string): Pulse;
  check(): Promise<HealthReport>;
}

const STALLED_MS = 300_000;
/** One failure may be a database that was away. */
const FAILING = 3;

export function makeHealth(store: Store, queues: Queues, pulses: Pulses): HealthCheck {
  const live = (): LiveReport => {
    const stopped = pulses.stopped();
    return { isAlive: stopped.length === 0, stopped };
  };
  return {
    live,
    loops: () => pulses.loops(),
    register: (loop) => pulses.register(loop),
    async check() {
      const [infos, chores, now] = await Promise.all([queues.list(), choreStates(store), databaseNow(store)]);
      const stalledQueues = infos.flatMap(({ queue, oldestReadyAt, pausedAt }) =>
        pausedAt === null && oldestReadyAt !== null && now.getTime() - oldestReadyAt.getTime() > STALLED_MS
          ? [queue]
          : [],
      );
      const failingChores = chores
        .filter(({ failures }) => failures >= FAILING)
        .map(({ chore, failures, error }) => ({ chore, failures, error }));
      const isBusy = infos.some(({ ready, retrying, running }) => ready + retrying + running > 0);
      const health =
        !live().isAlive || failingChores.length > 0
          ? "degraded"
          : stalledQueues.length > 0
            ? "stalled"
            : isBusy
              ? "working"
              : "healthy";
      return { ...live(), health, stalledQueues, failingChores };
    },
  };
}
