// Holds the leases of everything this process runs, and ends the runs whose lease is lost.
//
// The beats are sent by a beater (a thread, where possible). A beat that fails is "unknown": the lease may have been
// renewed. Only the database's word, or our own clock, ends a run: the clock counts from when the last successful
// request was *sent*, so it always runs out before the database's. After a stall of our own we listen before we judge.
import type { Pulse } from "../shared/pulse.ts";
import type { BeatResult } from "../store/jobs/beat.ts";
import { type Beater, clockMs } from "./beater.ts";
import { abortRun, type HeldLease, type Run } from "./run.ts";

export interface LeaseKeeper {
  /** A claim is about to be sent at `sentAt`: what it takes is kept from then on, also if we are blocked when the answer comes. */
  expect(token: string, leasesMs: readonly number[], sentAt: number): void;
  /** Of what was expected under this token, nothing more will be held. */
  expectNoMore(token: string, leasesMs: readonly number[]): void;
  /** The runs of one claim. `sentAt`: when the claim was sent, by `clockMs`. */
  hold(runs: readonly Run[], sentAt: number, isLight: boolean): void;
  /** Everything that is held. */
  held(): Iterable<HeldLease>;
  /** The leases that have no other open runs than these: settling these may remove their rows. */
  onlyOf(runs: readonly Run[]): Set<HeldLease>;
  /**
   * The run is over for this process. `row-gone`: its lease's row went with the settle. `left-behind`: the run was not
   * settled, so the row must stay and run out.
   */
  drop(run: Run, how: "settled" | "row-gone" | "left-behind"): void;
  onBeat(results: readonly BeatResult[], sentAt: number): void;
  start(): void;
  stop(): Promise<void>;
}

export interface LeaseKeeperInput {
  makeBeater(onBeat: LeaseKeeper["onBeat"]): Beater;
  /** Nobody else could take the jobs over: then our own clock ends nothing. */
  isOnlyProcess: boolean;
  onLost(run: Run): void;
  /** The watch over the leases, as one of the process's loops. */
  pulse?: () => Pulse;
}

const WATCH_MS = 250;
const STALL_MS = 2 * WATCH_MS;

export function makeLeaseKeeper(input: LeaseKeeperInput): LeaseKeeper {
  const { makeBeater, isOnlyProcess, onLost } = input;
  const leases = new Map<string, HeldLease>();
  let beater: Beater | undefined;
  let watching: NodeJS.Timeout | undefined;
  let watchedAt = clockMs();
  let pulse: Pulse | undefined;

  const idOf = (lease: { token: string; leaseMs: number }): string => `${lease.token}/${lease.leaseMs}`;

  function lose(lease: HeldLease): void {
    if (!leases.delete(idOf(lease))) return;
    beater?.drop(lease, false);
    for (const run of lease.runs) {
      if (run.lease !== lease || run.outcome) continue;
      abortRun(run, "lease-lost");
      onLost(run);
    }
  }

  /** Aborts what the database would soon give away, while there is still time to notice. */
  function watch(): void {
    const now = clockMs();
    pulse?.beat(WATCH_MS);
    // We were blocked: beats may have succeeded meanwhile, and their news is waiting behind this timer.
    const wasStalled = now - watchedAt > STALL_MS;
    watchedAt = now;
    if (wasStalled || isOnlyProcess) return;
    const doubtful = [...keeper.held()].filter(isOverdue);
    // A shorter stall is as long as a short lease: whatever news is waiting is heard before anything is lost.
    if (doubtful.length > 0) {
      setImmediate(() => {
        for (const lease of doubtful) if (isOverdue(lease)) lose(lease);
      });
    }
  }

  function isOverdue(lease: HeldLease): boolean {
    return clockMs() > lease.goodUntil - Math.min(lease.leaseMs / 10, 1_000);
  }

  function make(token: string, leaseMs: number, sentAt: number): HeldLease {
    const goodUntil = sentAt + leaseMs;
    const lease: HeldLease = {
      token,
      leaseMs,
      runs: [],
      open: 0,
      goodUntil,
      knownSince: Infinity,
      isLight: false,
      mustExpire: false,
    };
    leases.set(idOf(lease), lease);
    return lease;
  }

  const keeper: LeaseKeeper = {
    *held() {
      for (const lease of leases.values()) if (lease.knownSince !== Infinity) yield lease;
    },
    expect(token, leasesMs, sentAt) {
      for (const leaseMs of leasesMs) beater?.expect(make(token, leaseMs, sentAt));
    },
    expectNoMore(token, leasesMs) {
      for (const leaseMs of leasesMs) {
        const lease = leases.get(idOf({ token, leaseMs }));
        if (lease?.knownSince !== Infinity) continue;
        leases.delete(idOf(lease));
        beater?.drop(lease, false);
      }
    },
    hold(runs, sentAt, isLight) {
      const made: HeldLease[] = [];
      for (const run of runs) {
        let lease = made.find((candidate) => candidate.leaseMs === run.leaseMs);
        if (!lease) {
          const { token, leaseMs } = run;
          lease = leases.get(idOf(run)) ?? make(token, leaseMs, sentAt);
          lease.isLight = isLight;
          lease.knownSince = clockMs();
          made.push(lease);
          beater?.hold(lease);
        }
        lease.runs.push(run);
        lease.open += 1;
        run.lease = lease;
      }
    },
    onlyOf(runs) {
      const left = new Map<HeldLease, number>();
      for (const { lease } of runs) if (lease) left.set(lease, (left.get(lease) ?? lease.open) - 1);
      const only = new Set<HeldLease>();
      for (const [lease, count] of left) {
        if (count === 0 && !lease.mustExpire && leases.has(idOf(lease))) only.add(lease);
      }
      return only;
    },
    drop(run, how) {
      const { lease } = run;
      if (!lease) return;
      run.lease = undefined;
      lease.open -= 1;
      if (how === "left-behind") lease.mustExpire = true;
      if (lease.open > 0 || !leases.delete(idOf(lease))) return;
      beater?.drop(lease, how !== "row-gone" && !lease.mustExpire);
    },
    onBeat(results, sentAt) {
      for (const result of results) {
        const lease = leases.get(`${result.token}/${result.lease_ms}`);
        if (!lease) continue;
        if (result.state === "renewed") lease.goodUntil = Math.max(lease.goodUntil, sentAt + lease.leaseMs);
        // A beat that was sent before the claim was answered may have come before the claim.
        if (result.state === "lost" && sentAt > lease.knownSince) lose(lease);
        for (const id of result.cancel_ids) {
          for (const run of lease.runs) if (run.job.id === id) abortRun(run, "cancelled");
        }
      }
    },
    start() {
      beater ??= makeBeater((results, sentAt) => keeper.onBeat(results, sentAt));
      pulse ??= input.pulse?.();
      watching ??= setInterval(watch, WATCH_MS);
    },
    async stop() {
      clearInterval(watching);
      pulse?.end();
      await beater?.stop();
    },
  };
  return keeper;
}
