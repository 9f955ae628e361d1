// I17: of one coalescing key there is one open job at a time, and whatever was acknowledged under it, that payload or a newer one
// was run to the end.
//
// Which of two enqueues came first is known only where the one was answered before the other was asked: everything else may have been
// either way round. One that got no answer was over when its caller gave up, as its connection was; a server that was frozen may do it later.
import { type Check, groupBy } from "../check.ts";
import type { AuditFact, Facts, JobFact } from "../facts.ts";
import type { Coalesced, Told } from "../told.ts";

export interface AboutNewest {
  /** Those that coalesce. */
  jobs: readonly JobFact[];
  audits: ReadonlyMap<string, AuditFact[]>;
  execs: ReadonlyMap<string, Facts["execs"]>;
  check: Check;
}

export function judgeNewest(told: Told, { jobs, audits, execs, check }: AboutNewest): void {
  const byId = new Map(jobs.map((job) => [job.id, job]));
  for (const job of jobs) {
    const key = job.coalesce ?? "";
    const known = told.coalesced.get(key)?.some(({ n }) => n === job.n) === true;
    check("I2", known, () => `job ${job.id} has payload ${job.n}, which was never asked for under ${key}`);
    check("I17", job.state === "done", () => `job ${job.id} of ${key} is ${job.state}`);
    for (const { item } of execs.get(job.id) ?? []) {
      const isAsked = told.coalesced.get(key)?.some(({ n }) => n === item) === true;
      check("I2", isAsked, () => `job ${job.id} ran with payload ${item}, which was never asked for under ${key}`);
    }
    const ranIt = (execs.get(job.id) ?? []).some(
      ({ what, token, item }) => what === "end" && token === job.token && item === job.n,
    );
    check(
      "I17",
      ranIt,
      () => `job ${job.id} of ${key} is done, and its newest payload ${job.n} was not run to the end`,
    );
  }
  for (const [key, entries] of told.coalesced) judgeAnswers(key, entries, byId, check);
  for (const [key, of] of groupBy(jobs, (job) => job.coalesce ?? "")) {
    const spans = of.map(({ id }) => spanOf(id, audits.get(id) ?? [])).toSorted((a, b) => a.from - b.from);
    for (const [at, span] of spans.entries()) {
      const before = spans[at - 1];
      const isAlone = before === undefined || before.to < span.from;
      check("I17", isAlone, () => `${key}: job ${span.id} was accepted while ${before!.id} was open`);
    }
  }
}

function judgeAnswers(
  key: string,
  entries: readonly Coalesced[],
  byId: ReadonlyMap<string, JobFact>,
  check: Check,
): void {
  const at = new Map(entries.map((entry) => [entry.n, entry]));
  const created = new Map<string, number>();
  for (const { n, id, isCreated, askedAt } of entries) {
    if (id === undefined) continue;
    if (isCreated) created.set(id, (created.get(id) ?? 0) + 1);
    const job = byId.get(id);
    check("I17", job !== undefined, () => `${key}: payload ${n} was acknowledged as job ${id}, which is lost`);
    if (!job) continue;
    check("I17", job.coalesce === key, () => `${key}: payload ${n} was given to job ${id} of ${job.coalesce}`);
    const isNewer = (at.get(job.n)?.overAt ?? -Infinity) > askedAt;
    check("I17", isNewer, () => `${key}: job ${id} ended with payload ${job.n}, though ${n} was asked for after it`);
  }
  for (const [id, times] of created) {
    check("I17", times === 1, () => `${key}: job ${id} was created ${times} times, as its callers were told`);
  }
}

function spanOf(id: string, entries: readonly AuditFact[]): { id: string; from: number; to: number } {
  const from = entries.find(({ what }) => what === "accepted")?.seq ?? -Infinity;
  const to = entries.find(({ what }) => what.startsWith("ended:"))?.seq ?? Infinity;
  return { id, from, to };
}
