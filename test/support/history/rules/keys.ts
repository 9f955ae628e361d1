// I3: one enqueue is one job, one key is one job, and every answer about a key means the same.
import { type Check, groupBy } from "../check.ts";
import type { Facts, JobFact } from "../facts.ts";
import type { Told } from "../told.ts";

export interface AboutKeys {
  jobs: readonly JobFact[];
  keys: Facts["keys"];
  purged: Facts["purged"];
  byN: ReadonlyMap<number, JobFact[]>;
  check: Check;
}

export function judgeKeys(told: Told, { jobs: all, keys, purged, byN, check }: AboutKeys): void {
  const goneOf = groupBy([...purged.values()], (n) => n);
  for (const [n, gone] of goneOf) check("I3", gone.length === 1, () => `enqueue ${n} became ${gone.length} jobs`);
  for (const [n, jobs] of byN) {
    if (n < 0) continue;
    const gone = goneOf.get(n)?.length ?? 0;
    const isTwice = told.maybeTwice.has(n) && new Set(jobs.map(({ id }) => id)).size === 1;
    const isOnce = (isTwice || jobs.length === 1) && gone === 0;
    check("I3", isOnce, () => `enqueue ${n} became ${jobs.length + gone} jobs`);
  }
  for (const [key, ids] of told.keys) {
    check("I3", ids.size === 1, () => `key ${key} was answered with ${[...ids].join(" and ")}`);
    check("I3", ids.has(keys.get(key)!), () => `the ledger has ${keys.get(key)} for key ${key}`);
  }
  for (const [key, jobs] of groupBy(
    all.filter((job) => job.key !== null),
    (job) => job.key!,
  )) {
    check("I3", jobs.length === 1, () => `key ${key} has ${jobs.length} jobs`);
  }
  for (const [n, { ids }] of told.acked) {
    const job = byN.get(n)?.[0];
    if (job) check("I3", ids.includes(job.id), () => `enqueue ${n} was answered with ${ids[0]}, the job is ${job.id}`);
  }
  judgeConflicts(told, byN, check);
}

/**
 * The first under a key stays, and whoever comes with another one is told so. Which was first need not be
 * known: every answer says whether the payload that is there is the one it came with, and all must mean the same one.
 */
function judgeConflicts({ payloads }: Told, byN: ReadonlyMap<number, JobFact[]>, check: Check): void {
  for (const [key, said] of payloads) {
    const [{ n, isOther, isConflict }] = said as [(typeof said)[0]];
    const stored = isOther !== isConflict;
    for (const each of said) {
      const isSame = (each.isOther !== each.isConflict) === stored;
      check("I3", isSame, () => `key ${key}: its answers mean two payloads, somebody was not told of a conflict`);
      check("I3", !(each.isCreated && each.isConflict), () => `key ${key} was created, and in conflict`);
    }
    for (const job of byN.get(n) ?? []) {
      check("I3", job.other === stored, () => `job ${n} has another payload than the answers about key ${key} say`);
    }
  }
}
