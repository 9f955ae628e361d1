// When to ask for work, and for how much.
//
// Three questions, from cheap to dear: claim where something is known to be due; look ahead (on a timer) for what
// nobody told us of; look back behind the watermarks on a budget of a few percent of the loop's time. Wake-ups only make
// the first question come sooner: without any, everything still starts, within the polling interval.
//
// Suspects: while one waits, the loop stops claiming for a while so that the process can become empty, then runs it
// alone.
import { performance } from "node:perf_hooks";
import { isConnectionTrouble, isLockTimeout } from "../db/retryable.ts";
import { jitter, makeAlarm } from "../shared/sleep.ts";
import { randomToken } from "../shared/uuid.ts";
import {
  type ClaimedJob,
  claimedByToken,
  claimIds,
  claimLane,
  claimLanes,
  claimSuspect,
  type Holder,
} from "../store/jobs/claim.ts";
import { claimLight } from "../store/jobs/claim-light.ts";
import { type LeftBehind, lookAhead, lookBack, type Sight } from "../store/jobs/look.ts";
import type { Store } from "../store/sql.ts";
import { clockMs } from "./beater.ts";
import { type Lane, makeLanes } from "./lanes.ts";
import { MANY } from "./light.ts";
import type { Occupancy } from "./occupancy.ts";

export interface WakeUp {
  kind?: string | undefined;
  /** -priority. */
  rank?: number | undefined;
  ids?: readonly string[] | undefined;
  /** Milliseconds until it is due. */
  inMs?: number | undefined;
}

export interface Claim {
  token: string;
  /** When it was sent, by `clockMs`. */
  sentAt: number;
  /** A suspect has the process to itself. */
  alone: boolean;
  /** Written in its lease row only. */
  isLight: boolean;
}

/** A worker waits for jobs of this kind: they can be stored as its own. */
export interface HandOver {
  token: string;
  workerId: string;
  leaseMs: number;
  /** They are stored. */
  taken(jobs: ClaimedJob[]): void;
  /** They are not, or nobody knows. */
  failed(error: unknown): void;
}

export interface ClaimLoop {
  /** Room for so many new jobs of a kind while nothing else waits; each must be answered. */
  offer(kind: string, count: number): HandOver | undefined;
  wake(wakeUp: WakeUp): void;
  /** Much has landed behind the watermarks: begin again at the front. */
  rewind(): void;
  /** A slot became free. */
  slotFreed(): void;
  start(): void;
  /** Resolves when no claim is in flight and none will follow. */
  stop(): Promise<void>;
}

export interface ClaimLoopInput {
  store: Store;
  workerId: string;
  kinds: readonly { kind: string; leaseMs: number; attempts: number; queue: string }[];
  occupancy: Occupancy;
  freeSlots(): number;
  /** Jobs of this kind are over in a moment. */
  suitsLight(kind: string): boolean;
  /** A claim is about to be sent; what it takes will be under one of these leases. */
  onClaiming(claim: Claim, leasesMs: readonly number[]): void;
  onClaimed(jobs: ClaimedJob[], claim: Claim): void;
  /** It took nothing beyond that, or nobody will ask. */
  onAnswered(claim: Claim, leasesMs: readonly number[]): void;
  /** Each time it asked for jobs: how many it got, and how long that took. */
  onTook(jobs: number, tookMs: number, error?: unknown): void;
  onTrouble(error: unknown): void;
  /** After each turn: how long until the next. */
  onTurn(waitMs: number): void;
  pollMs: number;
}

const MAX_CLAIM = 1_000;
const MIN_POLL_MS = 25;
/** While claims come back full there is no hurry to look what else is there: a better rank, a suspect. */
const BUSY_LOOK_MS = 250;
const FLOWING_MS = 100;
const BLOCKED_MS = 1_000;
const LOOK_BACK_EVERY_MS = 500;
const LOOK_BACK_SHARE = 0.04;
const LOOK_BACK_LIMIT = 64;
/** Looking back that takes no longer can go with looking ahead. */
const CHEAP_BACK_MS = 20;
const MAX_NAMED = 1_000;
const QUIET_MS = 10_000;
const CAREFUL_MS = 5_000;

export function makeClaimLoop(input: ClaimLoopInput): ClaimLoop {
  const { store, occupancy, onTrouble } = input;
  const kinds = input.kinds.map((kind) => kind.kind);
  const leases = JSON.stringify(input.kinds.map((kind) => ({ kind: kind.kind, lease_ms: kind.leaseMs })));
  const leasesMs = [...new Set(input.kinds.map((kind) => kind.leaseMs))];
  const defaults = new Map(input.kinds.map((kind) => [kind.kind, kind]));
  const lanes = makeLanes(kinds);
  const alarm = makeAlarm();
  /** Jobs behind the watermarks that we were told of, with their rank; of an unknown one it is the best. */
  const named = new Map<string, number>();
  const unknown: Claim[] = [];
  let stopping = false;
  let loop: Promise<void> | undefined;

  let pollMs = MIN_POLL_MS;
  let nextLookAhead = 0;
  let lookedBackAt = -Infinity;
  /** How long that took. */
  let backMs = 0;
  let suspectWaits = false;
  let quietSince = Infinity;
  let quietAgainAt = 0;
  let troubleMs = 0;
  let slotsFreed = false;
  let rewinds = false;
  /** It knows of everything that was waiting when it began. */
  let hasLooked = false;
  /** Somebody named more than are kept. */
  let hasForgotten = false;
  /** The last claim was by name: each member of a group names the next, and would leave nothing to others for ever. */
  let isLanesTurn = false;
  /** Slots that jobs are on their way to. */
  let promised = 0;
  let onKept: (() => void) | undefined;
  let carefulUntil = 0;
  /** The last claim got all it asked for: there is more. */
  let wasFull = false;
  let fullAt = -Infinity;
  /** No light claims before this. */
  let heavyUntil = 0;
  /** The last claim was a light one that was not full: the ordinary way must say what is left. */
  let hasMissed = false;

  /** Sends one claim; occupancy has been told that it is on its way. */
  async function take(
    how: "ordinary" | "alone" | "light",
    ask: (holder: Holder) => Promise<ClaimedJob[]>,
  ): Promise<ClaimedJob[]> {
    const holder: Holder = { token: randomToken(), workerId: input.workerId, leases };
    const alone = how === "alone";
    const claim: Claim = { token: holder.token, sentAt: clockMs(), alone, isLight: how === "light" };
    let jobs: ClaimedJob[] = [];
    input.onClaiming(claim, leasesMs);
    const sentAt = performance.now();
    try {
      jobs = await ask(holder);
      input.onTook(jobs.length, performance.now() - sentAt);
    } catch (error) {
      input.onTook(0, performance.now() - sentAt, error);
      // The claim may have been made and only its reply lost.
      if (isConnectionTrouble(error)) unknown.push({ ...claim, isLight: false });
      else input.onAnswered(claim, leasesMs);
      throw error;
    } finally {
      occupancy.endClaim(jobs.length);
    }
    if (jobs.length > 0) input.onClaimed(jobs, claim);
    input.onAnswered(claim, leasesMs);
    return jobs;
  }

  /** Asks what became of claims whose reply was lost: what they took is ours, and nobody else knows. */
  async function adopt(): Promise<void> {
    const shortest = Math.min(...input.kinds.map((kind) => kind.leaseMs));
    while (unknown.length > 0) {
      const claim = unknown[0]!;
      // Too late: the lease runs out, and the jobs are recovered like any others.
      const isWorthIt = clockMs() - claim.sentAt < shortest / 2;
      const jobs = isWorthIt ? await claimedByToken(store, claim.token) : [];
      unknown.shift();
      if (jobs.length === 0 && claim.alone) occupancy.free();
      if (jobs.length > 0) {
        occupancy.adopt(jobs.length);
        input.onClaimed(jobs, claim);
      }
      input.onAnswered(claim, leasesMs);
    }
  }

  async function claimKnown(free: number): Promise<number> {
    const limit = Math.min(free, MAX_CLAIM);
    const best = lanes.best();
    // Named ones before others of their rank, and after those of a better one.
    const ids = namedUpTo(best[0]?.rank ?? Infinity, limit);
    if (ids.length > 0) {
      for (const id of ids) named.delete(id);
      if (!occupancy.beginClaim()) return 0;
      isLanesTurn = true;
      return (await take("ordinary", (holder) => claimIds(store, holder, ids, kinds, limit))).length;
    }
    isLanesTurn = false;
    if (best.length === 0) return 0;
    const wakesBefore = best.map((lane) => lane.wakes);
    // Enough of each lane that the best of all are surely among them, unless there are very many.
    const perLane = Math.min(limit, Math.max(16, 4 * Math.ceil(limit / best.length)));
    if (!occupancy.beginClaim()) return 0;
    // A lane that was full a moment ago fills up again.
    const isFlowing = wasFull || (!hasMissed && performance.now() - fullAt < FLOWING_MS);
    const mayBeLight = isFlowing && limit >= MANY && performance.now() > heavyUntil;
    if (best.length === 1 && mayBeLight && input.suitsLight(best[0]!.kind)) {
      return await claimLightly(best[0]!, limit);
    }
    const jobs = await take("ordinary", (holder) =>
      best.length === 1
        ? claimLane(store, holder, best[0]!, limit, performance.now() > carefulUntil)
        : claimLanes(store, holder, best, perLane, limit),
    );
    lanes.claimed(best, wakesBefore, jobs, limit, best.length === 1 ? limit : perLane);
    wasFull = jobs.length >= limit;
    hasMissed = false;
    if (wasFull) fullAt = performance.now();
    return jobs.length;
  }

  /** Occupancy has been told that a claim is on its way. */
  async function claimLightly(lane: Lane, limit: number): Promise<number> {
    const wakesBefore = [lane.wakes];
    const most = Math.min(limit, lane.lightMost);
    let fits = most;
    const claimed = await take("light", async (holder) => {
      const answer = await claimLight(store, holder, lane, defaults.get(lane.kind)!, most);
      wasFull = answer.isFull;
      fits = answer.fits;
      // A transaction that cancels here, or very many processes: waiting each time would cost more than light claims gain.
      if (answer.isBlocked) heavyUntil = performance.now() + BLOCKED_MS;
      return answer.jobs;
    });
    // Too few, or none because something was in the way: the ordinary claim takes the rest, and says what is left.
    hasMissed = !wasFull;
    if (!wasFull) return claimed.length;
    fullAt = performance.now();
    lanes.claimed([lane], wakesBefore, claimed, claimed.length);
    // An answer holds so many bytes: next time as many jobs as fit, and no great leap.
    lane.lightMost = Math.min(MAX_CLAIM, Math.max(MANY, Math.min(fits, Math.ceil(lane.lightMost * 1.5))));
    return claimed.length;
  }

  function namedUpTo(rank: number, limit: number): string[] {
    const ids: string[] = [];
    for (const [id, ofRank] of named) {
      if (ofRank > rank || (isLanesTurn && rank !== Infinity && (ofRank === rank || ofRank === -Infinity))) continue;
      ids.push(id);
      if (ids.length >= limit) break;
    }
    return ids;
  }

  function name(id: string, rank = -Infinity): void {
    if (named.size < MAX_NAMED) named.set(id, rank);
    // Too many to remember: they are found by looking, once these have been claimed.
    else hasForgotten = true;
  }

  /** A few are taken by name. Many more may be there: claims begin again where the first of them is. */
  function found(behind: readonly LeftBehind[]): void {
    if (behind.length < LOOK_BACK_LIMIT) {
      for (const { id, rank } of behind) name(id, rank);
      return;
    }
    for (const { kind, rank, run_us } of behind) lanes.setBack(kind, rank, run_us);
  }

  async function look(now: number): Promise<void> {
    // A worker that has nothing to do asks one question, not two.
    const asksBoth = isCalm() && backMs < CHEAP_BACK_MS;
    const began = performance.now();
    const sights = await lookAhead(store, lanes.all(), lanes.gaps(), kinds, asksBoth ? LOOK_BACK_LIMIT : 0);
    if (asksBoth) lookedBack(began);
    found(sights.filter((sight): sight is Sight & LeftBehind => sight.what === "behind"));
    const isDue = sights.some((sight) => sight.what !== "suspect" && sight.due_ms <= 0);
    const before = lanes.all().length;
    lanes.see(sights, performance.now());
    suspectWaits = sights.some((sight) => sight.what === "suspect" && sight.due_ms <= 0);
    pollMs = isDue ? MIN_POLL_MS : Math.min(pollMs * 2, input.pollMs);
    // A rank nobody knew may hide others behind it: look again at once.
    hasLooked = lanes.all().length === before;
    nextLookAhead = hasLooked ? performance.now() + jitter(isDue && wasFull ? BUSY_LOOK_MS : pollMs) : now;
  }

  async function lookBehind(): Promise<void> {
    hasForgotten = false;
    const positions = lanes.all();
    const began = performance.now();
    if (positions.length > 0) found(await lookBack(store, positions, LOOK_BACK_LIMIT));
    lookedBack(began);
  }

  /** Nothing was found for so long that questions are as far apart as they may be. */
  function isCalm(): boolean {
    return pollMs >= input.pollMs;
  }

  function lookedBack(began: number): void {
    lookedBackAt = performance.now();
    backMs = lookedBackAt - began;
  }

  function nextLookBack(): number {
    // In a calm it goes with looking ahead.
    const pauseMs = isCalm() && backMs < CHEAP_BACK_MS ? 2 * input.pollMs : LOOK_BACK_EVERY_MS;
    return lookedBackAt + Math.max(pauseMs, backMs / LOOK_BACK_SHARE);
  }

  /** True while the loop should not claim ordinary jobs, so that the process can become empty for a suspect. */
  function keepsQuiet(now: number): boolean {
    if (!suspectWaits || now < quietAgainAt) return false;
    if (quietSince === Infinity) quietSince = now;
    if (now - quietSince < QUIET_MS) return true;
    // Something here runs long. Let ordinary work go on, and leave the suspect to an emptier process for a while.
    quietSince = Infinity;
    quietAgainAt = now + jitter(3 * QUIET_MS);
    return false;
  }

  async function trySuspect(): Promise<boolean> {
    if (!occupancy.reserve()) {
      // It has waited for minutes: run it beside others; a crash then counts against nobody.
      if (!occupancy.beginClaim()) return false;
      return (await take("ordinary", (holder) => claimSuspect(store, holder, kinds, false))).length > 0;
    }
    let jobs: ClaimedJob[] = [];
    try {
      jobs = await take("alone", (holder) => claimSuspect(store, holder, kinds, true));
    } finally {
      if (jobs.length === 0) {
        suspectWaits = false;
        // Perhaps it was claimed, and will be adopted: then it still wants the process to itself.
        if (!unknown.some((claim) => claim.alone)) occupancy.free();
      }
    }
    quietSince = Infinity;
    return jobs.length > 0;
  }

  /** One turn. Returns how long to wait before the next. */
  async function turn(): Promise<number> {
    const now = performance.now();
    if (rewinds) {
      rewinds = false;
      lanes.rewind();
      nextLookAhead = 0;
    }
    lanes.warmDue(now);
    if (unknown.length > 0) await adopt();
    if (now >= nextLookAhead) await look(now);
    // Before the claim: a queue that is never empty would not let us look otherwise.
    if (now >= nextLookBack() || (hasForgotten && named.size === 0)) await lookBehind();
    const free = occupancy.isTaken ? 0 : input.freeSlots() - promised;
    if (suspectWaits && free > 0 && !stopping) {
      const isQuiet = keepsQuiet(now);
      if ((occupancy.running === 0 || !isQuiet) && (await trySuspect())) return 0;
      if (isQuiet) return Math.max(1, Math.min(nextLookAhead - performance.now(), 250));
    }
    if (free > 0 && !stopping) {
      const wasBusy = wasFull;
      const count = await claimKnown(free);
      if (wasBusy && !wasFull) nextLookAhead = Math.min(nextLookAhead, performance.now() + MIN_POLL_MS);
      if (count > 0) return 0;
      if (named.size > 0 || lanes.best().length > 0) return 0;
    }
    const next = Math.min(nextLookAhead, nextLookBack(), lanes.nextDueAt());
    return Math.max(1, next - performance.now());
  }

  async function run(): Promise<void> {
    while (!stopping) {
      let waitMs: number;
      try {
        waitMs = await turn();
        troubleMs = 0;
      } catch (error) {
        // Somebody holds a row that we tried to take without locking it first: lock and skip for a while.
        if (isLockTimeout(error)) carefulUntil = performance.now() + CAREFUL_MS;
        else onTrouble(error);
        troubleMs = Math.min(Math.max(50, troubleMs * 2), 2_000);
        waitMs = isLockTimeout(error) ? 1 : jitter(troubleMs);
        // Whatever was due is still due, and what a failed claim had been told of may be forgotten.
        lanes.wakeAll();
      }
      input.onTurn(waitMs);
      if (waitMs > 0 && !stopping) await alarm.wait(waitMs);
    }
  }

  function offer(kind: string, count: number): HandOver | undefined {
    const leaseMs = defaults.get(kind)?.leaseMs;
    // Whatever is waiting comes first, and a suspect needs the process to become empty.
    const isBusy = !hasLooked || suspectWaits || unknown.length > 0 || named.size > 0 || lanes.best().length > 0;
    if (stopping || leaseMs === undefined || isBusy || count > input.freeSlots() - promised) return undefined;
    if (!occupancy.beginClaim()) return undefined;
    promised += count;
    const claim: Claim = { token: randomToken(), sentAt: clockMs(), alone: false, isLight: true };
    const arrived = (jobs: ClaimedJob[]): void => {
      promised -= count;
      occupancy.endClaim(jobs.length);
      if (jobs.length > 0) input.onClaimed(jobs, claim);
      if (promised === 0) onKept?.();
    };
    input.onClaiming(claim, [leaseMs]);
    return {
      token: claim.token,
      workerId: input.workerId,
      leaseMs,
      taken(jobs) {
        arrived(jobs);
        input.onAnswered(claim, [leaseMs]);
      },
      failed(error) {
        if (isConnectionTrouble(error)) unknown.push({ ...claim, isLight: false });
        else input.onAnswered(claim, [leaseMs]);
        arrived([]);
        alarm.ring();
      },
    };
  }

  return {
    offer,
    wake({ kind, rank, ids, inMs }) {
      if (inMs !== undefined && inMs > 0) {
        if (kind !== undefined && rank !== undefined) lanes.dueIn(kind, rank, performance.now() + inMs);
        alarm.ring();
        return;
      }
      for (const id of ids ?? []) name(id, rank);
      if (kind !== undefined) lanes.wake(kind, rank);
      else if (!ids) {
        lanes.wakeAll();
        nextLookAhead = 0;
        lookedBackAt = -Infinity;
      }
      pollMs = MIN_POLL_MS;
      alarm.ring();
    },
    rewind() {
      // At the next turn: the answer to a claim that is on its way moves the watermarks once more.
      rewinds = true;
      alarm.ring();
    },
    slotFreed() {
      if (slotsFreed) return;
      // Handlers that end in the same turn of the event loop share the next claim.
      slotsFreed = true;
      setImmediate(() => {
        slotsFreed = false;
        alarm.ring();
      });
    },
    start() {
      loop ??= run();
    },
    async stop() {
      stopping = true;
      alarm.ring();
      await loop;
      if (promised > 0) await new Promise<void>((resolve) => (onKept = resolve));
      if (unknown.some((claim) => claim.alone)) occupancy.free();
      for (const claim of unknown) input.onAnswered(claim, leasesMs);
    },
  };
}
