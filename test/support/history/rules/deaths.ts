// I18: what follows a death is enqueued once for each death, in the commit that marks it; and for no other reason.
import type { Check } from "../check.ts";
import type { AuditFact, Facts, JobFact } from "../facts.ts";
import type { Told } from "../told.ts";

export interface AboutDeaths {
  jobs: readonly JobFact[];
  followers: Facts["followers"];
  audits: ReadonlyMap<string, AuditFact[]>;
  check: Check;
}

export function judgeDeaths(told: Told, { jobs, followers, audits, check }: AboutDeaths): void {
  const known = new Set(jobs.map(({ id }) => id));
  for (const { id, n } of jobs) {
    const isFollowed = told.asked.get(n)?.onDead === true;
    const many = followers.get(id) ?? 0;
    if (!isFollowed && many === 0) continue;
    const deaths = (audits.get(id) ?? []).filter(({ what }) => what.endsWith(">dead")).length;
    const wanted = isFollowed ? deaths : 0;
    check("I18", many === wanted, () => `job ${n} (${id}) died ${deaths} times, and ${many} jobs follow it`);
  }
  for (const id of followers.keys()) check("I18", known.has(id), () => `a job follows ${id}, which is no job`);
}
