// Runs that PostgreSQL forgot. A claim does not wait for the disk: of those that were answered in the last moments before a crash, some
// are not there afterwards. Their jobs are claimable as if nothing had been, and the runs can write nothing; but their handlers had begun,
// and could write that down only once the server was back.
//
// Only that is excused: no trace of the claim, and a handler that began within moments of a crash and whose row was written after it. A row
// that was committed before it has taken the claim to the disk with it.
import type { Facts } from "./facts.ts";
import type { Told } from "./told.ts";

/** Claims reach the disk within three rounds of the WAL writer (200 ms each); what is left is for a busy machine. */
const BEFORE_MS = 2_500;
/** A claim's answer may still be on its way, and its handler about to begin. */
const AFTER_MS = 500;

export const runOf = ({ job, token }: { job: string; token: string | null }): string => `${job} ${token}`;

/** As `runOf` names them. */
export function forgottenRuns({ epoch, crashes }: Told, facts: Facts): Set<string> {
  const owners = new Set([...facts.audit, ...facts.effects].map(runOf));
  const isForgotten = ({ what, lateFrom, lateAt }: Facts["execs"][number]): boolean =>
    what === "start" &&
    typeof lateFrom === "number" &&
    typeof lateAt === "number" &&
    crashes.some(
      ({ from, to }) =>
        lateFrom > epoch + from - BEFORE_MS && lateFrom < epoch + to + AFTER_MS && lateAt > epoch + from,
    );
  return new Set(facts.execs.filter((exec) => !owners.has(runOf(exec)) && isForgotten(exec)).map(runOf));
}
