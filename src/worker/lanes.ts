// What a claim loop remembers about the claim index: one lane per (kind, rank) it has seen, each with its watermark.
//
// A watermark is where the last claim began, not where it ended: rows that were locked then get another look. At the
// live edge it is set back a little, because statements commit in another order than they begin.
import type { ClaimedJob, LanePosition } from "../store/jobs/claim.ts";
import type { Gap, Sight } from "../store/jobs/look.ts";

export interface Lane extends LanePosition {
  /** How many a light claim should ask for. */
  lightMost: number;
  /** There may be something due at or after the watermark. */
  hot: boolean;
  /** Raised by every wake-up, so that one that comes during a claim is not forgotten. */
  wakes: number;
  /** Local time at which the lane's next job is due. */
  dueAt: number;
}

export const NIL_ID = "00000000-0000-0000-0000-000000000000";
const MOST_LIGHT = 1_000;
const LIVE_EDGE_MS = 1_000;
const SET_BACK_US = 100_000n;
const LOWEST = -101;
const HIGHEST = 101;

export interface Lanes {
  all(): Lane[];
  /** The hot lanes of the best rank. */
  best(): Lane[];
  wake(kind: string, rank: number | undefined): void;
  wakeAll(): void;
  /** Puts every watermark back to the beginning. */
  rewind(): void;
  /** Puts the watermark of a lane back to this time, if it is behind it: there is much to claim from there on. */
  setBack(kind: string, rank: number, runUs: string): void;
  /** Something of this lane is due at this local time. */
  dueIn(kind: string, rank: number, at: number): void;
  /** Ranks of each kind that no lane covers. */
  gaps(): Gap[];
  see(sights: readonly Sight[], now: number): void;
  /**
   * Moves the watermarks after a claim, and cools lanes that had nothing more. `limit`: of all of them; `perLane`: no lane could
   * give more, so that one which gave as many may have more.
   */
  claimed(
    lanes: readonly Lane[],
    wakesBefore: readonly number[],
    jobs: readonly ClaimedJob[],
    limit: number,
    perLane?: number,
  ): void;
  /** When the next job of any lane is due, in local time. */
  nextDueAt(): number;
  warmDue(now: number): void;
}

export function makeLanes(kinds: readonly string[]): Lanes {
  const byKind = new Map<string, Map<number, Lane>>(kinds.map((kind) => [kind, new Map()]));

  function lane(kind: string, rank: number): Lane | undefined {
    return byKind.get(kind)?.get(rank);
  }

  function addLane(kind: string, rank: number, fromUs: string, fromId: string): Lane | undefined {
    const ranks = byKind.get(kind);
    if (!ranks) return undefined;
    const made: Lane = {
      kind,
      rank,
      fromUs,
      fromId,
      lightMost: MOST_LIGHT,
      hot: false,
      wakes: 0,
      dueAt: Infinity,
    };
    ranks.set(rank, made);
    return made;
  }

  function warm(target: Lane): void {
    target.hot = true;
    target.wakes += 1;
  }

  const all = (): Lane[] => [...byKind.values()].flatMap((ranks) => [...ranks.values()]);

  return {
    all,
    best() {
      let bestRank = Infinity;
      const best: Lane[] = [];
      for (const ranks of byKind.values()) {
        for (const candidate of ranks.values()) {
          if (!candidate.hot || candidate.rank > bestRank) continue;
          if (candidate.rank < bestRank) best.length = 0;
          bestRank = candidate.rank;
          best.push(candidate);
        }
      }
      return best;
    },
    wake(kind, rank) {
      if (rank === undefined) {
        for (const known of byKind.get(kind)?.values() ?? []) warm(known);
        return;
      }
      // A rank never seen starts at the beginning: nothing of it has been walked yet.
      const found = lane(kind, rank) ?? addLane(kind, rank, "0", NIL_ID);
      if (found) warm(found);
    },
    wakeAll() {
      for (const known of all()) warm(known);
    },
    rewind() {
      for (const known of all()) {
        known.fromUs = "0";
        known.fromId = NIL_ID;
        warm(known);
      }
    },
    setBack(kind, rank, runUs) {
      const found = lane(kind, rank);
      if (!found) return;
      if (BigInt(runUs) <= BigInt(found.fromUs)) {
        found.fromUs = runUs;
        found.fromId = NIL_ID;
      }
      warm(found);
    },
    dueIn(kind, rank, at) {
      const found = lane(kind, rank) ?? addLane(kind, rank, "0", NIL_ID);
      if (found) found.dueAt = Math.min(found.dueAt, at);
    },
    gaps() {
      const gaps: Gap[] = [];
      for (const [kind, ranks] of byKind) {
        let lo = LOWEST;
        for (const rank of [...ranks.keys()].sort((left, right) => left - right)) {
          if (rank > lo + 1) gaps.push({ kind, lo, hi: rank });
          lo = rank;
        }
        if (lo + 1 < HIGHEST) gaps.push({ kind, lo, hi: HIGHEST });
      }
      return gaps;
    },
    see(sights, now) {
      for (const sight of sights) {
        if (sight.what === "suspect" || sight.what === "behind") continue;
        const found = lane(sight.kind, sight.rank) ?? addLane(sight.kind, sight.rank, sight.run_us ?? "0", NIL_ID);
        if (!found) continue;
        if (sight.due_ms <= 0) warm(found);
        else found.dueAt = Math.min(found.dueAt, now + sight.due_ms);
      }
    },
    claimed(lanes, wakesBefore, jobs, limit, perLane = Infinity) {
      const first = new Map<Lane, ClaimedJob>();
      const gave = new Map<Lane, number>();
      for (const job of jobs) {
        const of = lane(job.kind, job.rank);
        if (!of) continue;
        if (perLane < limit) gave.set(of, (gave.get(of) ?? 0) + 1);
        const known = first.get(of);
        if (!known || (jobs.length < limit ? before(job, known) : before(known, job))) first.set(of, job);
      }
      for (const [of, job] of first) {
        const isLive = jobs.length < limit && job.lag_ms < LIVE_EDGE_MS;
        of.fromUs = isLive ? (BigInt(job.run_us) - SET_BACK_US).toString() : job.run_us;
        of.fromId = isLive ? NIL_ID : job.id;
      }
      if (jobs.length >= limit) return;
      for (const [index, of] of lanes.entries()) {
        if (of.wakes === wakesBefore[index] && (gave.get(of) ?? 0) < perLane) of.hot = false;
      }
    },
    nextDueAt() {
      let next = Infinity;
      for (const ranks of byKind.values()) for (const known of ranks.values()) next = Math.min(next, known.dueAt);
      return next;
    },
    warmDue(now) {
      for (const known of all()) {
        if (known.dueAt > now) continue;
        known.dueAt = Infinity;
        warm(known);
      }
    },
  };
}

function before(left: ClaimedJob, right: ClaimedJob): boolean {
  const [a, b] = [left.run_us, right.run_us];
  if (a === b) return left.id < right.id;
  // Text order is number order where both have as many digits, as from 2001 to 2286, and not both are before 1970.
  return a.length === b.length && !a.startsWith("-") ? a < b : BigInt(a) < BigInt(b);
}
