// Runs that PostgreSQL forgot. A claim does not wait for the disk: of those that were answered in the last moments before a crash, some
// are not there afterwards. Their jobs are claimable as if nothing had been, and the runs can write nothing; but their handlers had begun,
// and could write that down only once the server was back.
//
// Only that is excused: no trace of the claim, and a handler that began within moments of a crash and could not say so before it.
import type { Facts } from "./facts.ts";
import type { Line } from "./record.ts";

const CRASH = /^(PostgreSQL: (immediate stop|kill -9)|failover)/;
/** Claims reach the disk within three rounds of the WAL writer (200 ms each); what is left is for a busy machine. */
const BEFORE_MS = 2_500;
/** A claim's answer may still be on its way, and its handler about to begin. A fault is written down once it is done. */
const AFTER_MS = 500;

export const runOf = ({ job, token }: { job: string; token: string | null }): string => `${job} ${token}`;

/** As `runOf` names them. */
export function forgottenRuns(lines: readonly Line[], facts: Facts): Set<string> {
  const begin = lines.find((line) => "epoch" in line && line.epoch !== undefined);
  if (begin === undefined || !("epoch" in begin)) return new Set();
  const crashes = lines.flatMap((line) =>
    "fault" in line && CRASH.test(line.fault) ? [begin.epoch! + line.at - begin.at] : [],
  );
  const owners = new Set([...facts.audit, ...facts.effects].map(runOf));
  const isForgotten = ({ what, lateFrom }: Facts["execs"][number]): boolean =>
    what === "start" &&
    typeof lateFrom === "number" &&
    crashes.some((at) => lateFrom > at - BEFORE_MS && lateFrom < at + AFTER_MS);
  return new Set(facts.execs.filter((exec) => !owners.has(runOf(exec)) && isForgotten(exec)).map(runOf));
}
