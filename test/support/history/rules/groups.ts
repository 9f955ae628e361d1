// I16: members of a group are given away one at a time, and in order.
import { type Check, groupBy } from "../check.ts";
import type { AuditFact, Facts, JobFact } from "../facts.ts";
import type { Told } from "../told.ts";

interface AboutGroups {
  byN: ReadonlyMap<number, JobFact[]>;
  audits: ReadonlyMap<string, AuditFact[]>;
  starts: ReadonlyMap<string, Facts["execs"]>;
  check: Check;
}

/**
 * I16: from its first claim until it is over, retries included, a job is the only one of its group that is given to anybody; and
 * none begins before one that came before it is over. Only what was acknowledged before the other was asked for came
 * before it for certain. Handlers of runs that lost their lease may end late: who owned a job counts, and when it began.
 */
export function judgeGroups(told: Told, { byN, audits, starts, check }: AboutGroups): void {
  const named = [...told.asked.values()].flatMap(({ n, group }) => {
    const id = byN.get(n)?.[0]?.id ?? told.acked.get(n)?.ids[0];
    return group === undefined || id === undefined ? [] : [{ n, group, id }];
  });
  for (const [group, members] of groupBy(named, (member) => member.group)) {
    const begun = new Map<string, number>();
    const over = new Map<string, number>();
    let head: string | undefined;
    const entries = members.flatMap(({ id }) => audits.get(id) ?? []).toSorted((a, b) => a.seq - b.seq);
    for (const { seq, job, what } of entries) {
      if (what === "light" || what.endsWith(">running")) {
        const before = head;
        const isAlone = before === undefined || before === job;
        check("I16", isAlone, () => `job ${job} of group ${group} was given away before ${before} was over`);
        head = job;
        if (!begun.has(job)) begun.set(job, seq);
      } else if (what.endsWith(">dead") || what.startsWith("ended:")) {
        over.set(job, seq);
        if (head === job) head = undefined;
      }
    }
    for (const { id } of members) {
      const start = starts.get(id)?.find((exec) => exec.what === "start")?.seq ?? Infinity;
      if (start < (begun.get(id) ?? Infinity)) begun.set(id, start);
    }
    for (const later of members) {
      const beganAt = begun.get(later.id);
      if (beganAt === undefined) continue;
      for (const first of members) {
        if ((told.ackedAt.get(first.n) ?? Infinity) >= told.askedAt.get(later.n)!) continue;
        const isOver = (over.get(first.id) ?? Infinity) < beganAt;
        check("I16", isOver, () => `job ${later.n} of group ${group} began before job ${first.n} was over`);
      }
    }
  }
}
