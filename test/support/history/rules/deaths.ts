// I18: what follows a death is enqueued once for each death, in the commit that marks it; and for no other reason.
import { type Check, groupBy } from "../check.ts";
import { AFTER_DEATH, type AuditFact, type Facts, type JobFact } from "../facts.ts";
import type { Told } from "../told.ts";

export interface AboutDeaths {
  jobs: readonly JobFact[];
  followers: Facts["followers"];
  audits: ReadonlyMap<string, AuditFact[]>;
  check: Check;
}

export function judgeDeaths(told: Told, { jobs, followers, audits, check }: AboutDeaths): void {
  const following = groupBy(
    jobs.filter(({ kind }) => kind === AFTER_DEATH),
    ({ follows }) => follows,
  );
  const known = new Set(jobs.map(({ id }) => id));
  for (const { id, n } of jobs) {
    const isFollowed = told.asked.get(n)?.onDead === true;
    const many = followers.get(id) ?? 0;
    if (!isFollowed && many === 0) continue;
    const deaths = (audits.get(id) ?? []).filter(({ what }) => what.endsWith(">dead"));
    const wanted = isFollowed ? deaths.length : 0;
    check("I18", many === wanted, () => `job ${n} (${id}) died ${deaths.length} times, and ${many} jobs follow it`);
    const commits = deaths.map(({ xact }) => xact).toSorted();
    const begun = (following.get(id) ?? []).map((each) => acceptedIn(audits.get(each.id) ?? [])).toSorted();
    const isTogether = begun.every((xact, at) => xact === commits[at]);
    check("I18", isTogether, () => `what follows the death of job ${n} (${id}) was enqueued in another commit`);
  }
  for (const id of followers.keys()) check("I18", known.has(id), () => `a job follows ${id}, which is no job`);
}

const acceptedIn = (entries: readonly AuditFact[]): string =>
  entries.find(({ what }) => what === "accepted")?.xact ?? "none";
