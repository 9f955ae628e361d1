// Sends the beats: one statement for all leases it was told of, at a third of the shortest. It runs in a thread of its own
// where it can (beat-thread.ts), so that a blocked event loop does not stop it, and in the main thread otherwise.
//
// It knows leases, not runs. A beat that fails is reported and tried again soon; what it means is for the lease keeper.
import { jitter, makeAlarm } from "../shared/sleep.ts";
import { beatIfHeld, type BeatResult, type LeaseId } from "../store/jobs/beat.ts";
import type { Store } from "../store/sql.ts";

export interface Beater {
  hold(lease: LeaseId): void;
  /** `removeRow`: all its jobs are settled, and its row goes with the next beat. */
  drop(lease: LeaseId, removeRow: boolean): void;
  /** Resolves when nothing is on its way; rows that should go are gone if the database lets them. */
  stop(): Promise<void>;
}

export interface BeaterInput {
  store: Store;
  /** `sentAt`: monotonic milliseconds of `clockMs`. */
  onBeat(results: BeatResult[], sentAt: number): void;
  onTrouble(error: unknown): void;
}

/** One clock for all threads of the process. */
export const clockMs = (): number => Number(process.hrtime.bigint()) / 1e6;

const REMOVE_AFTER_MS = 1_000;
const LONGEST_BEAT_MS = 10_000;

export function makeBeater({ store, onBeat, onTrouble }: BeaterInput): Beater {
  const leases = new Map<string, LeaseId>();
  let gone: LeaseId[] = [];
  const alarm = makeAlarm();
  let stopping = false;
  let nextAt = Infinity;

  const idOf = (lease: LeaseId): string => `${lease.token}/${lease.leaseMs}`;

  function beatEvery(): number {
    let shortest = Infinity;
    for (const lease of leases.values()) shortest = Math.min(shortest, lease.leaseMs);
    return Math.min(shortest / 3, LONGEST_BEAT_MS);
  }

  function beatWithin(ms: number): void {
    const due = clockMs() + ms;
    if (due >= nextAt) return;
    nextAt = due;
    alarm.ring();
  }

  async function beat(): Promise<void> {
    const held = [...leases.values()];
    const finished = gone;
    gone = [];
    if (held.length === 0 && finished.length === 0) return;
    const sentAt = clockMs();
    try {
      // A beat that hangs must not eat the time of the next one.
      onBeat(await beatIfHeld(store, held, finished, Math.max(200, Math.min(beatEvery(), 5_000))), sentAt);
    } catch (error) {
      gone.push(...finished);
      onTrouble(error);
    }
  }

  async function run(): Promise<void> {
    while (!stopping) {
      const waitMs = nextAt - clockMs();
      if (waitMs <= 0) {
        nextAt = Infinity;
        await beat();
        if (leases.size > 0) beatWithin(jitter(beatEvery()));
        else if (gone.length > 0) beatWithin(REMOVE_AFTER_MS);
      } else {
        await alarm.wait(Math.min(waitMs, 60_000));
      }
    }
    if (gone.length > 0) await beat();
  }
  const running = run();

  return {
    hold(lease) {
      leases.set(idOf(lease), { token: lease.token, leaseMs: lease.leaseMs });
      beatWithin(jitter(lease.leaseMs / 3));
    },
    drop(lease, removeRow) {
      leases.delete(idOf(lease));
      if (!removeRow) return;
      gone.push({ token: lease.token, leaseMs: lease.leaseMs });
      beatWithin(REMOVE_AFTER_MS);
    },
    async stop() {
      stopping = true;
      alarm.ring();
      await running;
    },
  };
}
