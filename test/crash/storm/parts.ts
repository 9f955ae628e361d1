// The parts of the proof: what kind of storm each is. Each runs by itself, for as long as it is told to, from a seed.
import {
  exhaustConnections,
  freeze,
  freezePostgres,
  kill,
  killBackend,
  killPostmaster,
  loseNotifications,
  loseReplies,
  network,
  type Nemesis,
  stopPostgres,
  term,
  terminateBackends,
} from "./faults.ts";
import { failOver, routeToBoth } from "./failover.ts";
import { findPgbouncer, routeToPgbouncer } from "./pgbouncer.ts";
import type { Storm, StormOptions } from "./storm.ts";

export interface Part {
  /** How long in `npm run test:faults`. */
  seconds: number;
  options?: Omit<StormOptions, "seed">;
  nemeses: readonly Nemesis[];
  /** Before the first fault. */
  first?(storm: Storm): Promise<void> | void;
  /** The share of operations that must be answered while faults go on. */
  okShare?: number;
  /** Why it cannot be run here. */
  skip?: () => string | undefined;
}

const deaths: Nemesis = { rest: [150, 600], faults: [kill] };

export const PARTS: Record<string, Part> = {
  kills: {
    seconds: 100,
    nemeses: [deaths, { rest: [1_500, 3_000], faults: [freeze, term] }],
  },
  network: {
    seconds: 100,
    nemeses: [
      { rest: [50, 300], faults: [network] },
      { rest: [50, 400], faults: [network] },
    ],
    first: (storm) => loseReplies(storm, 0.02),
    okShare: 0.3,
  },
  postgres: {
    seconds: 100,
    options: { settings: { max_connections: 80 } },
    nemeses: [
      {
        rest: [800, 2_500],
        faults: [
          stopPostgres,
          stopPostgres,
          killPostmaster,
          killPostmaster,
          killBackend,
          killBackend,
          terminateBackends,
          exhaustConnections,
          freezePostgres,
        ],
      },
    ],
    okShare: 0.3,
  },
  deaf: {
    seconds: 25,
    options: { poll: "500ms" },
    nemeses: [{ rest: [500, 1_500], faults: [kill, term] }],
    first: loseNotifications,
  },
  pooler: {
    seconds: 40,
    options: { route: routeToPgbouncer, poll: "500ms" },
    nemeses: [{ rest: [300, 1_200], faults: [kill, kill, term, terminateBackends] }],
    skip: () =>
      findPgbouncer() === undefined ? "pgbouncer is not installed (Debian: apt-get install pgbouncer)" : undefined,
  },
  failover: {
    seconds: 60,
    options: { route: routeToBoth, callTimeout: "3s" },
    nemeses: [
      { rest: [3_000, 5_000], faults: [failOver] },
      { rest: [1_000, 3_000], faults: [kill, term] },
    ],
    okShare: 0.3,
  },
  everything: {
    seconds: 60,
    options: { settings: { max_connections: 80 } },
    nemeses: [
      { rest: [400, 1_500], faults: [kill, kill, freeze, term] },
      { rest: [200, 1_500], faults: [network] },
      { rest: [5_000, 15_000], faults: [stopPostgres, killPostmaster, killBackend, terminateBackends] },
    ],
    first: (storm) => loseReplies(storm, 0.005),
    okShare: 0.3,
  },
};
