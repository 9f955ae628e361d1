// The parts of the proof: what kind of storm each is. Each runs by itself, for as long as it is told to, from a seed.
import type { Expectations } from "../../support/history/judge.ts";
import {
  exhaustConnections,
  freeze,
  freezePostgres,
  goReadOnly,
  holdSnapshot,
  holdSnapshotThroughout,
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
import { isSlower } from "./held.ts";
import { PEOPLE } from "./people.ts";
import { findPgbouncer, routeToPgbouncer } from "./pgbouncer.ts";
import { feedOneOfEach, feedPoison } from "./poison.ts";
import { isLate } from "./recovery.ts";
import { whatGrew } from "./soak.ts";
import type { Storm, StormOptions } from "./storm.ts";

export interface Part {
  /** How long in `npm run test:faults`. */
  seconds: number;
  options?: Omit<StormOptions, "seed">;
  nemeses: readonly Nemesis[];
  /** Before the first fault. */
  first?(storm: Storm): Promise<void> | void;
  /** Faults whose names begin so: at least so many in a minute, or the part is not what its name says. */
  perMinute: Record<string, number>;
  /** The share of operations that must be answered while faults go on. */
  okShare?: number;
  /** How long the answer to any call may take. */
  callMs?: number;
  /** Of jobs that run for longer than their lease, so many must be done. */
  leastLong?: number;
  /** What else the judge expects: see there. */
  expected?: Pick<Expectations, "reasons" | "troubled">;
  /** Before everything is stopped: what is wrong that the judge does not see. */
  after?(storm: Storm): Promise<string[]>;
  /** Only when it is asked for by name. */
  isExtra?: boolean;
  /** Why it cannot be run here. */
  skip?: () => string | undefined;
}

const deaths: Nemesis = { rest: [150, 600], faults: [kill] };
const people: Nemesis = { rest: [300, 1_500], faults: PEOPLE };

export const PARTS: Record<string, Part> = {
  kills: {
    seconds: 30,
    // Somebody always looks for leases that have run out: recovery.ts.
    options: { spares: true },
    expected: { reasons: true, troubled: 0 },
    nemeses: [deaths, { rest: [1_500, 3_000], faults: [freeze, term] }, people],
    perMinute: { "kill -9": 10, SIG: 2, "people: ": 5 },
    after: isLate,
  },
  network: {
    seconds: 40,
    nemeses: [{ rest: [50, 300], faults: [network] }, { rest: [50, 400], faults: [network] }, people],
    first: (storm) => loseReplies(storm, 0.02),
    perMinute: {
      "network: ": 20,
      "committed, answer lost": 10,
      // Each is known by the text of its statement, which may change.
      "committed, answer lost: enqueue": 2,
      "committed, answer lost: settle": 3,
      "committed, answer lost: COMMIT": 2,
      "committed, answer lost: COPY": 0.5,
    },
    okShare: 0.3,
  },
  postgres: {
    seconds: 40,
    options: { long: 0.02, settings: { max_connections: 80 } },
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
          goReadOnly,
          holdSnapshot,
        ],
      },
      people,
    ],
    perMinute: { "PostgreSQL: ": 5 },
    okShare: 0.3,
  },
  held: {
    seconds: 40,
    expected: { reasons: true },
    nemeses: [{ rest: [2_000, 5_000], faults: [kill, term, terminateBackends] }],
    first: holdSnapshotThroughout,
    perMinute: { "kill -9": 2 },
    after: isSlower,
  },
  deaf: {
    seconds: 20,
    options: { poll: "500ms" },
    nemeses: [{ rest: [500, 1_500], faults: [kill, term] }],
    first: loseNotifications,
    perMinute: { "notification lost": 20, "kill -9": 1 },
  },
  pooler: {
    seconds: 20,
    options: { route: routeToPgbouncer, poll: "500ms" },
    nemeses: [{ rest: [300, 1_200], faults: [kill, kill, term, terminateBackends] }],
    perMinute: { "": 6, "kill -9": 3 },
    skip: () =>
      findPgbouncer() === undefined ? "pgbouncer is not installed (Debian: apt-get install pgbouncer)" : undefined,
  },
  failover: {
    seconds: 30,
    options: { route: routeToBoth, callTimeout: "3s" },
    nemeses: [
      { rest: [3_000, 5_000], faults: [failOver] },
      { rest: [1_000, 3_000], faults: [kill, term] },
    ],
    perMinute: { failover: 2 },
    okShare: 0.3,
    // One statement may take three seconds, is sent up to five times, and each time both hosts may be asked.
    callMs: 20_000,
  },
  poison: {
    seconds: 40,
    options: { heapMb: 96, grace: "1s" },
    // A process that runs out of memory may hear no answer in time, and neither do those beside the cause.
    expected: { reasons: true },
    nemeses: [{ rest: [1_000, 2_000], faults: [feedPoison] }],
    first: feedOneOfEach,
    // At its own length one of each.
    perMinute: { "poison: loop": 1.5, "poison: memory": 1.5, "poison: abort": 1.5, "poison: kill": 1.5 },
  },
  soak: {
    seconds: 600,
    options: { report: true, long: 0.03, settings: { max_connections: 80, max_wal_size: "256MB" } },
    nemeses: [
      { rest: [1_500, 4_000], faults: [kill, freeze, term] },
      { rest: [1_000, 4_000], faults: [network] },
      {
        rest: [20_000, 40_000],
        faults: [
          stopPostgres,
          killPostmaster,
          killBackend,
          terminateBackends,
          exhaustConnections,
          goReadOnly,
          holdSnapshot,
        ],
      },
      { rest: [1_000, 5_000], faults: PEOPLE },
    ],
    first: (storm) => loseReplies(storm, 0.002),
    perMinute: {
      "kill -9": 1,
      SIGSTOP: 1,
      SIGTERM: 1,
      "network: ": 4,
      "committed, answer lost": 2,
      "PostgreSQL: ": 0.5,
    },
    after: whatGrew,
    leastLong: 20,
    okShare: 0.3,
  },
  everything: {
    isExtra: true,
    seconds: 60,
    options: { long: 0.02, settings: { max_connections: 80 } },
    nemeses: [
      { rest: [400, 1_500], faults: [kill, kill, freeze, term] },
      { rest: [200, 1_500], faults: [network] },
      { rest: [5_000, 15_000], faults: [stopPostgres, killPostmaster, killBackend, terminateBackends, holdSnapshot] },
      people,
    ],
    first: (storm) => loseReplies(storm, 0.005),
    perMinute: { "kill -9": 3, "network: ": 5, "PostgreSQL: ": 1 },
    okShare: 0.3,
  },
};
