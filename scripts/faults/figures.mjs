// What the figures of docs/proof.md are: how each is counted, and how much of it there has to be.
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { root } from "../set-up.mjs";

const sum = (results, of) => results.reduce((total, result) => total + of(result), 0);
const faultsLike = (pattern) => (result) =>
  sum(
    Object.entries(result.faults ?? {}).filter(([name]) => pattern.test(name)),
    ([, count]) => count,
  );

/**
 * Seeds that were tried, however many results say so, and on however many PostgreSQLs. Two seeds of one run that took the same
 * course are one schedule.
 */
export function distinctSchedules(results) {
  const spans = results.flatMap(({ seed, schedules }) => (schedules > 0 ? [{ from: seed, to: seed + schedules }] : []));
  let seeds = 0;
  let upTo = -Infinity;
  for (const { from, to } of spans.toSorted((a, b) => a.from - b.from)) {
    seeds += Math.max(0, to - Math.max(from, upTo));
    upTo = Math.max(upTo, to);
  }
  return seeds - sum(results, ({ schedules = 0, courses = schedules }) => schedules - courses);
}

let defined;
const definedMutants = () =>
  (defined ??= spawnSync(process.execPath, [join(root, "test/mutants.mjs"), "--list"], { encoding: "utf8" })
    .stdout.trim()
    .split("\n"));

/** What became of those that there are today. `open`: nobody knows yet. */
export function mutantsOf(results, names = definedMutants()) {
  const tables = results.filter(({ part }) => part === "mutants");
  const told = (of) => new Set(tables.flatMap(of));
  const alive = told((r) => r.alive);
  const dead = told((r) => r.killed.map(({ name }) => name));
  return {
    alive: names.filter((name) => alive.has(name)),
    killed: names.filter((name) => dead.has(name) && !alive.has(name)),
    open: names.filter((name) => !dead.has(name) && !alive.has(name)),
  };
}

const CRASHES = /^PostgreSQL: (immediate stop|kill -9)/;

/**
 * What the page says, how it is counted (`of` each result, or of all of them), how much of it there has to be, or when there is enough, and
 * which part makes more of it.
 */
export const FIGURES = [
  { name: "jobs through faults", of: (r) => r.counts?.jobs ?? 0, least: 100_000, part: "everything" },
  { name: "`kill -9` of a worker", of: faultsLike(/^kill -9$/), least: 1_000, part: "kills" },
  { name: "runs that a `kill -9` cut off, and that were run again", of: (r) => r.recovery?.cut ?? 0, least: 0 },
  { name: "workers frozen past their lease, then thawed", of: faultsLike(/^SIGSTOP$/), least: 100, part: "kills" },
  { name: "SIGTERM under load", of: faultsLike(/^SIGTERM$/), least: 50, part: "kills" },
  {
    name: "network faults",
    of: faultsLike(/^(network|commit unknown|committed, answer lost)/),
    least: 1_000,
    part: "network",
  },
  {
    name: "… of these: the answer said that it was committed, and was lost",
    of: faultsLike(/^committed, answer lost/),
    least: 300,
    part: "network",
  },
  { name: "PostgreSQL crashes (immediate stop, `kill -9`)", of: faultsLike(CRASHES), least: 50, part: "postgres" },
  {
    name: "PostgreSQL: other faults (frozen, read-only, connections terminated or exhausted, an old snapshot held)",
    of: (r) => faultsLike(/^PostgreSQL/)(r) - faultsLike(CRASHES)(r),
    least: 10,
    part: "postgres",
  },
  { name: "failovers to a synchronous replica", of: faultsLike(/^failover$/), least: 10, part: "failover" },
  {
    name: "`kill -9` of the embedded database",
    of: faultsLike(/^embedded: kill -9/),
    least: 60,
    part: "embedded",
    // In one run: it has no seed, so that the next one takes the place of its result.
    env: { HOLDFAST_KILLS: "30" },
  },
  {
    name: "lease races in which a settle and an expiry met (at work at the same time, or one found the other's lock)",
    of: (r) => r.met ?? 0,
    least: 0,
  },
  {
    name: "… of so many leases that ran out as their run ended",
    of: (r) => r.races ?? 0,
    least: 5_000,
    part: "lease-races",
    env: { FAULT_LONG: "1" },
  },
  {
    name: "simulated schedules, each seed and each course counted once",
    all: distinctSchedules,
    least: 10_000,
    part: "simulation",
    env: { SIM_SEEDS: "1000" },
  },
  {
    name: "interleavings of claim, expire and settle, all of them",
    of: (r) => r.interleavings ?? 0,
    least: 6_720,
    part: "interleavings",
  },
  { name: "… of these: no mirror image of another one", of: (r) => r.distinct ?? 0, least: 0 },
  {
    name: "runs of the model",
    of: (r) => r.modelRuns ?? 0,
    least: 2_000,
    part: "model",
    env: { MODEL_RUNS: "2000" },
  },
  { name: "mutants of the product, defined in the suite", all: () => definedMutants().length, least: 0 },
  { name: "… killed by a test", all: (results) => mutantsOf(results).killed.length, least: 0 },
  { name: "… alive", all: (results) => mutantsOf(results).alive.length, least: 0 },
  {
    name: "… unsure, or not tried with this engine",
    all: (results) => mutantsOf(results).open.length,
    isReached: (results) => mutantsOf(results).open.length === 0,
    script: "test/mutants.mjs",
  },
  {
    name: "indexes and tables in which `amcheck` looked for damage afterwards",
    of: (r) => r.checked ?? 0,
    least: 0,
  },
  { name: "facts looked at by the judge", of: (r) => sum(Object.values(r.looked ?? {}), (n) => n), least: 0 },
  { name: "**violations**", of: (r) => r.violations?.length ?? 0, least: 0 },
];

export const totalOf = (figure, results) => (figure.all ? figure.all(results) : sum(results, figure.of));

export const isReached = (figure, results) =>
  figure.isReached ? figure.isReached(results) : totalOf(figure, results) >= figure.least;
