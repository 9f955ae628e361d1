// Holds the leases of everything this process runs: one statement per beat, at a third of the shortest lease.
//
// A beat that fails is "unknown": the lease may have been renewed. Only the database's word, or our own clock, ends a
// run: the clock counts from when the last successful request was *sent*, so it always runs out before the database's.
import { performance } from "node:perf_hooks";
import { jitter, makeAlarm } from "../shared/sleep.ts";
import { beatIfHeld, type BeatResult, type LeaseId } from "../store/jobs/beat.ts";
import type { Store } from "../store/sql.ts";
import { abortRun, type HeldLease, type Run } from "./run.ts";

export interface LeaseKeeper {
  /** The runs of one claim. `sentAt`: when the claim was sent. */
  hold(runs: readonly Run[], sentAt: number): void;
  /** The leases that have no other open runs than these: settling these may remove their rows. */
  onlyOf(runs: readonly Run[]): Set<HeldLease>;
  /**
   * The run is over for this process. `row-gone`: its lease's row went with the settle. `left-behind`: the run was not
   * settled, so the row must stay and run out.
   */
  drop(run: Run, how: "settled" | "row-gone" | "left-behind"): void;
  start(): void;
  stop(): Promise<void>;
}

export interface LeaseKeeperInput {
  store: Store;
  onLost(run: Run): void;
  onTrouble(error: unknown): void;
}

const WATCH_MS = 250;

export function makeLeaseKeeper({ store, onLost, onTrouble }: LeaseKeeperInput): LeaseKeeper {
  const leases = new Set<HeldLease>();
  let gone: LeaseId[] = [];
  const alarm = makeAlarm();
  let stopping = false;
  let loop: Promise<void> | undefined;
  let nextBeatAt = Infinity;

  const beatEvery = (): number => {
    let shortest = Infinity;
    for (const lease of leases) shortest = Math.min(shortest, lease.leaseMs);
    return shortest / 3;
  };

  function lose(lease: HeldLease): void {
    leases.delete(lease);
    for (const run of lease.runs) {
      if (run.lease !== lease || run.outcome) continue;
      abortRun(run, "lease-lost");
      onLost(run);
    }
  }

  function take(held: readonly HeldLease[], results: readonly BeatResult[], sentAt: number): void {
    const byId = new Map(results.map((result) => [`${result.token}/${result.lease_ms}`, result]));
    for (const lease of held) {
      const result = byId.get(`${lease.token}/${lease.leaseMs}`);
      if (!result || !leases.has(lease)) continue;
      if (result.state === "renewed") lease.goodUntil = sentAt + lease.leaseMs;
      if (result.state === "lost") lose(lease);
      for (const id of result.cancel_ids) {
        for (const run of lease.runs) if (run.job.id === id) abortRun(run, "cancelled");
      }
    }
  }

  async function beat(): Promise<void> {
    const held = [...leases];
    const finished = gone;
    gone = [];
    if (held.length === 0 && finished.length === 0) return;
    const sentAt = performance.now();
    try {
      // A beat that hangs must not eat the time of the next one.
      const timeoutMs = Math.max(200, Math.min(beatEvery(), 5_000));
      take(held, await beatIfHeld(store, held, finished, timeoutMs), sentAt);
    } catch (error) {
      gone.push(...finished);
      onTrouble(error);
    }
  }

  /** Aborts what the database would soon give away, while there is still time to notice. */
  function watch(): void {
    const now = performance.now();
    for (const lease of leases) {
      if (now > lease.goodUntil - Math.min(lease.leaseMs / 10, 1_000)) lose(lease);
    }
  }

  async function keep(): Promise<void> {
    while (!stopping || leases.size > 0) {
      if (performance.now() >= nextBeatAt) {
        nextBeatAt = Infinity;
        await beat();
        if (leases.size > 0 || gone.length > 0) beatBefore(jitter(Math.min(beatEvery(), 10_000)));
      }
      watch();
      const wait = Math.min(nextBeatAt - performance.now(), leases.size > 0 ? WATCH_MS : Infinity);
      await alarm.wait(Math.max(1, Math.min(wait, 60_000)));
    }
    if (gone.length > 0) await beat();
  }

  function beatBefore(ms: number): void {
    const due = performance.now() + ms;
    if (due >= nextBeatAt) return;
    nextBeatAt = due;
    alarm.ring();
  }

  return {
    hold(runs, sentAt) {
      const made: HeldLease[] = [];
      for (const run of runs) {
        let lease = made.find((candidate) => candidate.leaseMs === run.leaseMs);
        if (!lease) {
          const { token, leaseMs } = run;
          lease = { token, leaseMs, runs: [], open: 0, goodUntil: sentAt + leaseMs, mustExpire: false };
          made.push(lease);
          leases.add(lease);
        }
        lease.runs.push(run);
        lease.open += 1;
        run.lease = lease;
      }
      beatBefore(jitter(Math.min(...made.map((lease) => lease.leaseMs)) / 3));
    },
    onlyOf(runs) {
      const left = new Map<HeldLease, number>();
      for (const { lease } of runs) if (lease) left.set(lease, (left.get(lease) ?? lease.open) - 1);
      const only = new Set<HeldLease>();
      for (const [lease, count] of left) if (count === 0 && !lease.mustExpire && leases.has(lease)) only.add(lease);
      return only;
    },
    drop(run, how) {
      const { lease } = run;
      if (!lease) return;
      run.lease = undefined;
      lease.open -= 1;
      if (how === "left-behind") lease.mustExpire = true;
      if (lease.open > 0 || !leases.delete(lease)) return;
      if (how === "row-gone" || lease.mustExpire) return;
      gone.push({ token: lease.token, leaseMs: lease.leaseMs });
      beatBefore(1_000);
    },
    start() {
      loop ??= keep();
    },
    async stop() {
      stopping = true;
      alarm.ring();
      await loop;
    },
  };
}
