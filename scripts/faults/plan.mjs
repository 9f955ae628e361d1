// What `npm run test:faults` runs, in this order, and how long each takes on two cores that have nothing else to do. The
// times are for the plan that is printed, and for when a part is given up; how long it really took is in the summary.

/** The lengths: with these the whole takes about 24 minutes, ten of it the soak. */
const LENGTHS = {
  HOLDFAST_KILLS: "16",
  HOLDFAST_FREEZES: "12",
  HOLDFAST_LONG: "1",
  PLANS_FINISHED: "500000",
  FUZZ_CASES: "800",
  FAULT_UPLOADS: "120",
  FAULT_ITEMS: "50000",
  FAULT_KILLS: "10",
  SIM_SEEDS: "200",
  MODEL_RUNS: "300",
  // Also for those that are short in `npm test`, where nobody waits for the disk.
  TEST_FSYNC: "on",
};

const storm = (name, seconds, what) => ({
  name,
  what,
  seconds: seconds + 20,
  files: ["test/crash/storm/storm.faults.ts"],
  env: { FAULT_PARTS: name },
  isStorm: true,
});

/**
 * `seconds`: how long it takes. `files`: for vitest. `env`: what they are told. `isStorm`: it can be told how long.
 * `isUnseeded`: a seed would not repeat it. `hasNoResult`: what its tests say is all there is.
 * @typedef {{ name: string, what: string, seconds: number, files: string[], env: Record<string, string>,
 *   isStorm?: boolean, isUnseeded?: boolean, hasNoResult?: boolean }} Step
 */

/** @type {Step[]} */
export const PLAN = [
  {
    name: "interleavings",
    what: "every order of claim, expire and settle for three actors",
    seconds: 40,
    files: ["test/model/interleavings.faults.ts"],
    isUnseeded: true,
  },
  { name: "model", what: "commands against the model", seconds: 25, files: ["test/model/model.faults.ts"] },
  {
    name: "simulation",
    what: "schedules that a seed picks",
    seconds: 55,
    files: ["test/model/simulation/simulation.faults.ts"],
  },
  {
    name: "majors",
    what: "some of both on PostgreSQL 14 to 17",
    seconds: 20,
    files: ["test/model/majors.faults.ts"],
    env: { SIM_SEEDS: "20" },
  },
  {
    name: "lease-races",
    what: "leases that run out as their run ends",
    seconds: 20,
    files: ["test/race/lease.faults.ts"],
  },
  {
    name: "embedded",
    what: "the embedded database killed at any moment, and in its first start",
    seconds: 50,
    files: ["test/db/embedded-crash.test.ts"],
    isUnseeded: true,
  },
  {
    name: "disk-full",
    what: "the embedded database on a disk that is full",
    seconds: 20,
    files: ["test/db/embedded-disk-full.faults.ts"],
    isUnseeded: true,
  },
  {
    name: "fuzz",
    what: "data of every shape",
    seconds: 35,
    files: ["worker", "batches", "inbox"].map((room) => `test/${room}/fuzz.test.ts`),
  },
  {
    name: "uploads",
    what: "uploads cut at random, the server killed in between",
    seconds: 35,
    files: ["test/inbox/faults.test.ts"],
  },
  {
    name: "batches",
    what: "a batch of 50,000 items in processes that are killed",
    seconds: 45,
    files: ["test/crash/batches.test.ts"],
    isUnseeded: true,
  },
  {
    name: "one-by-one",
    what: "workers killed and frozen, the database away, one fault at a time, often",
    seconds: 80,
    files: ["crash/storm", "crash/killed", "long/database-away"].map((file) => `test/${file}.test.ts`),
    isUnseeded: true,
    hasNoResult: true,
  },
  {
    name: "plans",
    what: "how statements are planned when half a million jobs have ended",
    seconds: 35,
    files: ["test/store/plans.test.ts"],
    isUnseeded: true,
    hasNoResult: true,
  },
  storm("kills", 30, "workers killed, frozen, told to stop"),
  storm("network", 40, "networks that break in eight ways, and answers lost after their commit"),
  storm("postgres", 40, "PostgreSQL stopped, killed, frozen, read-only, without connections"),
  storm("held", 40, "a snapshot that is held all along"),
  storm("deaf", 20, "no notification arrives"),
  storm("pooler", 20, "pgbouncer in transaction mode"),
  storm("failover", 30, "failover to a synchronous replica"),
  storm("poison", 40, "jobs that end their process"),
  storm("soak", 600, "ten minutes of everything, in which nothing may grow"),
].map((step) => ({ ...step, env: { ...LENGTHS, ...step.env } }));

/** Storms that only run when they are asked for. */
export const EXTRA = [storm("everything", 60, "everything at once")];

export const findStep = (name) => [...PLAN, ...EXTRA].find((step) => step.name === name);
