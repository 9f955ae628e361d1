// Judges a run: the history of the driver against the facts of the database. Pure, so that it can be shown doctored
// histories and must see through each of them (test/model/judge.test.ts).
//
// Each invariant says how much it looked at and what broke it. A run in which nothing worked proves nothing: it fails too.
// I13 (schedules) is not here: there are none.
import { groupBy } from "./check.ts";
import { type Facts, NEWEST } from "./facts.ts";
import { forgottenRuns, runOf } from "./forgotten.ts";
import type { Line } from "./record.ts";
import { judgeAsked, notRefused } from "./rules/asked.ts";
import { judgeBatches } from "./rules/batches.ts";
import { judgeDeaths } from "./rules/deaths.ts";
import { judgeGroups } from "./rules/groups.ts";
import { judgeJob } from "./rules/jobs.ts";
import { judgeKeys } from "./rules/keys.ts";
import { judgeNewest } from "./rules/newest.ts";
import { judgeOwners } from "./rules/owners.ts";
import { judgeParcels } from "./rules/parcels.ts";
import { judgeTaken } from "./rules/taken.ts";
import { readHistory } from "./told.ts";

export interface Verdict {
  /** Invariant → how many things it looked at. */
  looked: Record<string, number>;
  /** Sentences, each with the invariant it is about. */
  violations: string[];
  /** Of all calls of the driver that were answered. */
  longestCallMs: number;
  counts: {
    asked: number;
    ok: number;
    failed: number;
    unknown: number;
    jobs: number;
    done: number;
    faults: number;
    /** Runs of claims that a crash of PostgreSQL has taken along. */
    forgotten: number;
  };
}

export interface Expectations {
  /** Of what was asked while faults went on, at least this share was answered with ok. */
  okShare?: number;
  /** How long after the last fault everything may take to be over. */
  drainMs?: number;
  /** How long the answer to any call may take; ten seconds, if it does not say. */
  callMs?: number;
  /** False: there may have been none. */
  faults?: boolean;
  /** Faults whose names begin so: there were at least so many. A storm of the wrong kind proves nothing about this one. */
  leastFaults?: Record<string, number>;
  /** So many jobs that run for longer than their lease were done. */
  leastLong?: number;
  /** The database was well all the time: each run that was taken away from its worker has a reason (I19). */
  reasons?: boolean;
  /** At most so many attempts are charged because a statement of the handler's own did not get through. */
  troubled?: number;
  /** Invariants that had something to look at. */
  covers?: readonly string[];
}

/** What every storm has something of, however short it is. */
export const COVERED_BY_STORMS = [
  "I1",
  "I2",
  "I3",
  "I4",
  "I5",
  "I6",
  "I7",
  "I8",
  "I9",
  "I10",
  "I11",
  "I12",
  "I15",
  "I16",
  "I17",
  "I18",
];

const MOST_SHOWN = 20;
const sum = (numbers: readonly number[]): number => numbers.reduce((a, b) => a + b, 0);
/** However the database is: a call ends, well or not. The longest is many statements, each with its own limit. */
const CALL_MS = 10_000;
const TERMINAL = new Set(["done", "dead", "cancelled"]);

export function judge(lines: readonly Line[], facts: Facts, expected: Expectations = {}): Verdict {
  const { okShare = 0.5, drainMs = 120_000, faults: needsFaults = true, leastFaults = {} } = expected;
  const { leastLong = 0, covers = [], reasons = false, troubled: mostTroubled = Infinity } = expected;
  const looked: Record<string, number> = {};
  const violations: string[] = [];
  const check = (invariant: string, holds: boolean, say: () => string): void => {
    looked[invariant] = (looked[invariant] ?? 0) + 1;
    if (!holds && violations.length < MOST_SHOWN) violations.push(`${invariant}: ${say()}`);
  };

  const told = readHistory(lines);
  // Those that coalesce are several enqueues each, and judged by rules of their own.
  const jobs = facts.jobs.filter((job) => job.kind !== NEWEST);
  const byN = groupBy(jobs, (job) => job.n);
  const byId = new Map(facts.jobs.map((job) => [job.id, job]));
  const audits = groupBy(facts.audit, (entry) => entry.job);
  const forgotten = forgottenRuns(told, facts);
  const starts = groupBy(
    facts.execs.filter((exec) => !forgotten.has(runOf(exec))),
    (exec) => exec.job,
  );
  const effects = groupBy(facts.effects, (effect) => effect.job);

  // I1: what was acknowledged is there, and has ended.
  for (const [n, { ids }] of told.acked) {
    const found = byN.get(n) ?? [];
    const isThere = found.length > 0 || ids.some((id) => facts.purged.has(id));
    check("I1", isThere, () => `job ${n} was acknowledged (${ids[0]}) and is lost`);
    for (const job of found) check("I1", TERMINAL.has(job.state), () => `job ${n} is still ${job.state}`);
  }
  // So is what was accepted, whether or not anybody was told.
  for (const id of audits.keys()) {
    check("I1", byId.has(id) || facts.purged.has(id), () => `job ${id} was accepted and is lost`);
  }
  for (const id of effects.keys()) check("I5", audits.has(id), () => `there is an effect of ${id}, which is no job`);

  // I2: nothing exists, and nothing ran, that was not asked for. Without a number are only those that follow a batch or a death.
  const unnumbered = jobs.filter((job) => job.n < 0).length;
  const following = sum(facts.batches.map(({ follow }) => follow)) + sum([...facts.followers.values()]);
  check("I2", unnumbered === following, () => `${unnumbered} jobs have no number, ${following} follow something`);
  for (const job of jobs) {
    const isMeant = job.state !== "cancelled" || notRefused(told.people.cancel.get(job.n)).length > 0;
    check("I2", isMeant, () => `job ${job.n} (${job.id}) is cancelled, and nobody asked for that`);
    if (job.n < 0) continue;
    check("I2", told.asked.has(job.n), () => `job ${job.id} (n ${job.n}) was never asked for`);
    check("I2", !told.refused.has(job.n), () => `job ${job.n} exists though its enqueue was refused`);
  }
  for (const [id, n] of facts.purged) {
    check("I2", told.asked.has(n), () => `job ${id} (n ${n}), which is purged, was never asked for`);
  }
  const owners = new Set(facts.audit.map(runOf));
  for (const exec of facts.execs) {
    check(
      "I2",
      byId.has(exec.job) || facts.purged.has(exec.job),
      () => `a handler ran for ${exec.job}, which is no job`,
    );
    const isOwner = owners.has(runOf(exec)) || forgotten.has(runOf(exec));
    check("I6", isOwner, () => `a handler ran for ${exec.job} under ${exec.token}, which never owned it`);
  }

  judgeKeys(told, { jobs, keys: facts.keys, purged: facts.purged, byN, check });

  for (const job of facts.jobs) {
    // What follows something, and what coalesces, is asked for by its kind: to be done, in one attempt.
    const isPlain = job.n < 0 || job.kind === NEWEST;
    const asked = isPlain ? { n: job.n } : told.asked.get(job.n);
    const isTwice = told.maybeTwice.has(job.n) && byN.get(job.n)!.length > 1;
    if (!asked || isTwice) continue;
    if (job.n < 0) check("I8", job.state === "done", () => `job ${job.id}, which follows something, is ${job.state}`);
    judgeJob(job, asked, {
      check,
      execs: starts.get(job.id) ?? [],
      effects: effects.get(job.id) ?? [],
      charged: facts.charged.get(job.id) ?? 0,
      troubled: facts.troubled.get(job.id) ?? 0,
      rises: (audits.get(job.id) ?? []).filter(({ what }) => what === "dead>pending").length,
    });
  }

  for (const [id, entries] of audits) {
    const n = byId.get(id)?.n ?? -1;
    judgeOwners(id, entries, {
      check,
      effects: effects.get(id) ?? [],
      mayRise: told.people.retry.has(n),
      mayGo: told.people.discard.has(n),
      mayReturn: told.maybeTwice.has(n),
    });
  }
  judgeAsked(told, { byN, audits, check });
  if (reasons) judgeTaken(told, { byId, facts, audits, execs: starts, check });
  const troubled = sum([...facts.troubled.values()]) + sum(facts.batches.map((batch) => batch.troubled));
  check(
    "I8",
    troubled <= mostTroubled,
    () => `${troubled} attempts were charged for statements that did not get through`,
  );

  judgeBatches(told, facts.batches, check);
  judgeParcels(told, facts.parcels, check);

  for (const id of facts.purged.keys()) {
    check("I14", !facts.purgedEarly.includes(id), () => `job ${id} was purged before its time`);
    check("I14", !byId.has(id), () => `job ${id} was purged, and is there`);
  }

  judgeNewest(told, { jobs: facts.jobs.filter((job) => job.kind === NEWEST), audits, execs: starts, check });
  judgeDeaths(told, { jobs, followers: facts.followers, audits, check });
  judgeGroups(told, { byN, audits, starts, check });

  // I15: it came to rest after the last fault, and what was asked then was done.
  const healedAt = told.phases.get("healed");
  const drainedAt = told.phases.get("drained");
  check("I15", healedAt !== undefined && drainedAt !== undefined, () => "the run never came to rest");
  if (healedAt !== undefined && drainedAt !== undefined) {
    const took = drainedAt - healedAt;
    check("I15", took <= drainMs, () => `it took ${took} ms to come to rest, ${drainMs} were allowed`);
    check("I15", told.tail.asked > 0, () => "nothing was asked after the last fault");
    check(
      "I15",
      told.tail.ok === told.tail.asked,
      () => `after the last fault ${told.tail.asked} asked, ${told.tail.ok} ok`,
    );
  }
  const { ms: longestCallMs, verb } = told.longest;
  check(
    "I15",
    longestCallMs <= (expected.callMs ?? CALL_MS),
    () => `a call (${verb}) was answered after ${longestCallMs} ms`,
  );
  for (const job of facts.jobs) check("I15", TERMINAL.has(job.state), () => `job ${job.n} is still ${job.state}`);

  // A run in which everything errored must not pass.
  const { during } = told;
  const done = facts.jobs.filter((job) => job.state === "done").length;
  check("enough", during.asked > 0, () => "nothing was asked while faults went on");
  check(
    "enough",
    during.ok >= okShare * during.asked,
    () => `only ${during.ok} of ${during.asked} operations were ok while faults went on`,
  );
  check("enough", done > 0, () => "no job was done");
  check(
    "enough",
    done >= okShare * told.acked.size,
    () => `${done} jobs were done, ${told.acked.size} were acknowledged`,
  );
  if (needsFaults) check("enough", told.faults.length > 0, () => "there were no faults");
  const long = jobs.filter(({ n, state }) => state === "done" && told.asked.get(n)?.long === true).length;
  check("enough", long >= leastLong, () => `${long} jobs that outlast their lease were done, not ${leastLong}`);
  for (const [name, least] of Object.entries(leastFaults)) {
    const count = told.faults.filter((fault) => fault.startsWith(name)).length;
    check("enough", count >= least, () => `"${name}" happened ${count} times, ${least} were to be expected`);
  }
  for (const invariant of covers) {
    check("enough", (looked[invariant] ?? 0) > 0, () => `there was nothing to judge ${invariant} by`);
  }

  const { ok, failed, unknown } = told.answers;
  return {
    looked,
    violations,
    longestCallMs,
    counts: {
      asked: told.ops,
      ok,
      failed,
      unknown,
      jobs: facts.jobs.length,
      done,
      faults: told.faults.length,
      forgotten: forgotten.size,
    },
  };
}
