// I19: nobody takes a run away from a worker that is well. Each run that ends without an end has a reason: its handler failed or put
// itself off, somebody asked for it, a newer payload waits, its process was hit, or it shared that with a job that ends processes.
// What was claimed and never began has two more: the queue was paused, or the claim's answer was lost with its connection.
//
// For storms in which the database is well all the time: while nobody can reach it, leases run out.
import type { Check } from "../check.ts";
import { type AuditFact, type Facts, type JobFact, NEWEST } from "../facts.ts";
import type { Told } from "../told.ts";
import { notRefused, wereAsked } from "./asked.ts";

export interface AboutTaken {
  byId: ReadonlyMap<string, JobFact>;
  facts: Facts;
  audits: ReadonlyMap<string, AuditFact[]>;
  execs: ReadonlyMap<string, Facts["execs"]>;
  check: Check;
}

/** A lease, and whoever looks: what was lost under a fault is found so much later at most. */
const FOUND_MS = 5_000;
/** Until a worker has heard that a queue goes on. */
const HEARD_MS = 2_500;
/** Two clocks of one machine. */
const CLOCKS_MS = 250;
/** Nobody comes back from these. */
const ENDS = /^(kill -9|SIGTERM)/;
const TERMINATED = "PostgreSQL: backends terminated";

export function judgeTaken(told: Told, { byId, facts, audits, execs, check }: AboutTaken): void {
  const charges = new Set(facts.charges.map(({ job, claimCount }) => `${job} ${claimCount}`));
  const poisoned = firstPoison(told, byId, facts);
  for (const [id, entries] of audits) {
    const job = byId.get(id);
    // What is purged was done; nobody knows its payload any more.
    if (!job) continue;
    const unasked: AuditFact[] = [];
    for (const entry of entries) {
      if (!isTaken(entry, entries)) continue;
      const of = (execs.get(id) ?? []).filter(({ token }) => token === entry.token);
      const holder = facts.holders.get(entry.token ?? "");
      const at = (entry.at ?? 0) - told.epoch;
      const within = (from: number, to: number): boolean => at >= from - CLOCKS_MS && at <= to;
      const isHit = told.hits.some(
        ({ fault, on, from, to }) =>
          on !== undefined && on === holder && within(from, ENDS.test(fault) ? Infinity : to + FOUND_MS),
      );
      const isUnbegun =
        !of.some(({ what }) => what === "start") &&
        (told.paused.some(({ from, to }) => within(from, to + HEARD_MS)) ||
          told.hits.some(({ fault, from, to }) => fault === TERMINATED && within(from, to + FOUND_MS)));
      const isItsOwn =
        charges.has(`${id} ${entry.claimCount}`) ||
        of.some(({ what }) => what === "snooze") ||
        (job.kind === NEWEST && of.some(({ what }) => what === "end"));
      const isPoisoned = (poisoned.get(holder ?? "") ?? Infinity) < entry.seq;
      if (!isItsOwn && !isHit && !isUnbegun && !isPoisoned) unasked.push(entry);
      else check("I19", true, () => "");
    }
    if (unasked.length === 0) continue;
    const releases = notRefused(told.people.release.get(job.n));
    const times = unasked.map(({ at }) => (at ?? 0) - told.epoch);
    check("I19", wereAsked(releases, times), () => sentence(job, unasked, facts.holders));
  }
}

const sentence = ({ n, id }: JobFact, taken: readonly AuditFact[], holders: Facts["holders"]): string => {
  const [first] = taken as [AuditFact];
  return `job ${n} (${id}) was taken away from a worker that was well, ${taken.length} times (${first.what} of ${first.token} at ${holders.get(first.token ?? "")})`;
};

/** A light claim leaves no trace in the row: it was given back if its lease went and its job did not end with it. */
function isTaken({ what, xact, token, seq }: AuditFact, entries: readonly AuditFact[]): boolean {
  if (what === "running>pending") return true;
  if (what !== "light-end") return false;
  return !entries.some(
    (other) => other.token === token && other.what.startsWith("ended:") && (other.seq < seq || other.xact === xact),
  );
}

/** When each process began a job that ends it: from then on whatever it has is lost with it. */
function firstPoison(told: Told, byId: AboutTaken["byId"], { execs, holders }: Facts): Map<string, number> {
  const first = new Map<string, number>();
  for (const { job, token, what, seq } of execs) {
    const holder = holders.get(token);
    if (what !== "start" || holder === undefined || !told.asked.get(byId.get(job)?.n ?? -1)?.die) continue;
    first.set(holder, Math.min(seq, first.get(holder) ?? Infinity));
  }
  return first;
}
