// Holds the leases of everything this process runs: one statement per beat, at a third of the shortest lease.
//
// A beat that fails is "unknown": the lease may have been renewed. Only the database's word, or our own clock, ends a
// run: the clock counts from when the last successful request was *sent*, so it always runs out before the database's.
import { performance } from "node:perf_hooks";
import { jitter, makeAlarm } from "../shared/sleep.ts";
import { beatIfHeld, type BeatResult, type LeaseId } from "../store/jobs/beat.ts";
import type { Store } from "../store/sql.ts";
import { abortRun, type Run } from "./run.ts";

interface HeldLease extends LeaseId {
  runs: Set<Run>;
  /** Local time until which the database surely has not given the jobs away. */
  goodUntil: number;
  /** A run was left behind: the row must run out, or nobody would ever recover that job. */
  mustExpire: boolean;
}

export interface LeaseKeeper {
  /** `sentAt`: when the claim was sent. */
  hold(runs: readonly Run[], sentAt: number): void;
  /** The leases that have no other runs than these: settling these may remove their rows. */
  onlyOf(runs: readonly Run[]): LeaseId[];
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
  const leases = new Map<string, HeldLease>();
  let gone: LeaseId[] = [];
  const alarm = makeAlarm();
  let stopping = false;
  let loop: Promise<void> | undefined;
  let nextBeatAt = Infinity;

  const idOf = (run: { token: string; leaseMs: number }): string => `${run.token}/${run.leaseMs}`;
  const beatEvery = (): number => {
    let shortest = Infinity;
    for (const lease of leases.values()) shortest = Math.min(shortest, lease.leaseMs);
    return shortest / 3;
  };

  function lose(lease: HeldLease): void {
    leases.delete(idOf(lease));
    for (const run of lease.runs) {
      if (run.settling) continue;
      abortRun(run, "lease-lost");
      onLost(run);
    }
  }

  function take(results: readonly BeatResult[], sentAt: number): void {
    for (const result of results) {
      const lease = leases.get(`${result.token}/${result.lease_ms}`);
      if (!lease) continue;
      if (result.state === "renewed") lease.goodUntil = sentAt + lease.leaseMs;
      if (result.state === "lost") lose(lease);
      if (result.cancel_ids.length === 0) continue;
      const cancelled = new Set(result.cancel_ids);
      for (const run of lease.runs) if (cancelled.has(run.job.id)) abortRun(run, "cancelled");
    }
  }

  async function beat(): Promise<void> {
    const held = [...leases.values()].map(({ token, leaseMs }) => ({ token, leaseMs }));
    const finished = gone;
    gone = [];
    if (held.length === 0 && finished.length === 0) return;
    const sentAt = performance.now();
    try {
      // A beat that hangs must not eat the time of the next one.
      take(await beatIfHeld(store, held, finished, Math.max(200, Math.min(beatEvery(), 5_000))), sentAt);
    } catch (error) {
      gone.push(...finished);
      onTrouble(error);
    }
  }

  /** Aborts what the database would soon give away, while there is still time to notice. */
  function watch(): void {
    const now = performance.now();
    for (const lease of [...leases.values()]) {
      if (now > lease.goodUntil - Math.min(lease.leaseMs / 10, 1_000)) lose(lease);
    }
  }

  async function keep(): Promise<void> {
    while (!stopping || leases.size > 0) {
      const now = performance.now();
      if (now >= nextBeatAt) {
        nextBeatAt = Infinity;
        await beat();
        if (leases.size > 0 || gone.length > 0) nextBeatAt = performance.now() + jitter(Math.min(beatEvery(), 10_000));
      }
      watch();
      const wait = Math.min(nextBeatAt - performance.now(), leases.size > 0 ? WATCH_MS : Infinity);
      await alarm.wait(Math.max(1, Math.min(wait, 60_000)));
    }
    if (gone.length > 0) await beat();
  }

  return {
    hold(runs, sentAt) {
      for (const run of runs) {
        const id = idOf(run);
        let lease = leases.get(id);
        if (!lease) {
          lease = {
            token: run.token,
            leaseMs: run.leaseMs,
            runs: new Set(),
            goodUntil: sentAt + run.leaseMs,
            mustExpire: false,
          };
          leases.set(id, lease);
        }
        lease.runs.add(run);
      }
      const due = performance.now() + jitter(beatEvery());
      if (due < nextBeatAt) {
        nextBeatAt = due;
        alarm.ring();
      }
    },
    onlyOf(runs) {
      const left = new Map<HeldLease, number>();
      for (const run of runs) {
        const lease = leases.get(idOf(run));
        if (lease?.runs.has(run)) left.set(lease, (left.get(lease) ?? lease.runs.size) - 1);
      }
      return [...left].flatMap(([lease, count]) => (count === 0 && !lease.mustExpire ? [lease] : []));
    },
    drop(run, how) {
      const lease = leases.get(idOf(run));
      if (!lease) return;
      lease.runs.delete(run);
      if (how === "left-behind") lease.mustExpire = true;
      if (lease.runs.size > 0) return;
      leases.delete(idOf(run));
      if (how === "row-gone" || lease.mustExpire) return;
      gone.push({ token: lease.token, leaseMs: lease.leaseMs });
      if (nextBeatAt === Infinity) {
        nextBeatAt = performance.now() + 1_000;
        alarm.ring();
      }
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
