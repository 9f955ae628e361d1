// Sends the beats: one statement for all leases it is shown, at a third of the shortest. It runs in a thread of its own
// where it can (beat-thread.ts), so that a blocked event loop does not stop it, and in the main thread otherwise.
//
// It knows leases, not runs. A beat that fails is reported and tried again soon; what it means is for the lease keeper.
import type { Pulses } from "../shared/pulse.ts";
import { jitter, makeAlarm } from "../shared/sleep.ts";
import { beatIfHeld, type BeatResult, type LeaseId } from "../store/jobs/beat.ts";
import type { Store } from "../store/sql.ts";

/** What the lease keeper asks for. */
export interface Beater {
  /** A claim for it is about to be sent: beats that find nothing do no harm. */
  expect(lease: LeaseId): void;
  hold(lease: LeaseId): void;
  /** `removeRow`: all its jobs are settled, and its row goes with the next beat. */
  drop(lease: LeaseId, removeRow: boolean): void;
  /** Resolves when nothing is on its way; rows that should go are gone if the database lets them. */
  stop(): Promise<void>;
}

/** Where the leases are written down. */
export interface LeaseSource {
  /** Also what is only expected: it may not be there. */
  held(): (LeaseId & { isExpected?: boolean })[];
  finished(): { lease: LeaseId; forget(): void }[];
  /** What is held may change without a wake-up as long as no lease is shorter than this; 0: wake us. */
  expect(shortestLeaseMs: number): void;
}

export interface BeatLoop {
  wake(): void;
  stop(): Promise<void>;
}

export interface BeatLoopInput {
  store: Store;
  /** `sentAt`: milliseconds of `clockMs`. */
  onBeat(results: BeatResult[], sentAt: number, tookMs: number): void;
  /** A beat got no answer: nobody knows whether it was heard. */
  onMissed(error: unknown): void;
  /** The loop is alive, and will be heard of again in so many milliseconds. */
  onTurn?(nextInMs: number): void;
}

export interface BeaterInput extends Omit<BeatLoopInput, "onTurn"> {
  /** Where its loops are registered, and under which name. */
  pulses: Pulses;
  name: string;
}

/** One clock for all threads of the process. */
export const clockMs = (): number => Number(process.hrtime.bigint()) / 1e6;

const REMOVE_AFTER_MS = 1_000;
const LONGEST_BEAT_MS = 10_000;
const REST_MS = 60_000;

export function startBeats(input: BeatLoopInput, source: LeaseSource): BeatLoop {
  const { store, onBeat, onMissed, onTurn } = input;
  const alarm = makeAlarm();
  let stopping = false;
  let beatAt = -Infinity;

  async function beat(held: ReturnType<LeaseSource["held"]>, everyMs: number): Promise<void> {
    const finished = source.finished();
    if (held.length === 0 && finished.length === 0) return;
    const sentAt = clockMs();
    try {
      // A beat that hangs must not eat the time of the next one.
      const timeoutMs = Math.max(200, Math.min(everyMs, 5_000));
      onTurn?.(timeoutMs);
      const gone = finished.map(({ lease }) => lease);
      const results = await beatIfHeld(store, held, gone, timeoutMs);
      for (const { forget } of finished) forget();
      // What a claim that took nothing would have had is not lost.
      const expected = new Set(held.flatMap(({ isExpected, token }) => (isExpected ? [token] : [])));
      const heard = results.filter(({ state, token }) => state !== "lost" || !expected.has(token));
      onBeat(heard, sentAt, clockMs() - sentAt);
    } catch (error) {
      onMissed(error);
    }
  }

  async function run(): Promise<void> {
    while (!stopping) {
      const held = source.held();
      const isEmpty = held.length === 0;
      const shortest = shortestOf(held);
      source.expect(shortest);
      // What was written down between the look and the word did not wake us.
      const now = shortestOf(source.held());
      if (now > 0 && (isEmpty || now < shortest)) continue;
      const everyMs = isEmpty ? REMOVE_AFTER_MS : Math.min(shortest / 3, LONGEST_BEAT_MS);
      const waitMs = beatAt + everyMs - clockMs();
      if (waitMs <= 0) {
        beatAt = clockMs();
        await beat(held, everyMs);
      } else if (isEmpty && source.finished().length === 0) {
        onTurn?.(REST_MS);
        await alarm.wait(REST_MS);
        // The first beat after a rest comes after a share of the lease, like any other.
        beatAt = clockMs();
      } else {
        onTurn?.(waitMs);
        await alarm.wait(jitter(waitMs));
      }
    }
    if (source.finished().length > 0) await beat([], REMOVE_AFTER_MS);
  }
  const running = run();

  return {
    wake: () => alarm.ring(),
    async stop() {
      stopping = true;
      alarm.ring();
      await running;
    },
  };
}

function shortestOf(leases: readonly LeaseId[]): number {
  return leases.length === 0 ? 0 : Math.min(...leases.map((lease) => lease.leaseMs));
}

/** Beats from the thread that holds the leases. */
export function makeBeater({ pulses, name, ...input }: BeaterInput): Beater {
  const leases = new Map<string, LeaseId>();
  const gone = new Map<string, LeaseId>();
  let expected = 0;
  const idOf = (lease: LeaseId): string => `${lease.token}/${lease.leaseMs}`;
  const pulse = pulses.register(`heartbeat of ${name}`);
  const turns = { ...input, onTurn: (nextInMs: number) => pulse.beat(nextInMs) };
  const loop = startBeats(turns, {
    held: () => [...leases.values()],
    finished: () => [...gone].map(([id, lease]) => ({ lease, forget: () => void gone.delete(id) })),
    expect: (shortestLeaseMs) => (expected = shortestLeaseMs),
  });
  function hold({ token, leaseMs }: LeaseId): void {
    leases.set(idOf({ token, leaseMs }), { token, leaseMs });
    if (expected === 0 || leaseMs < expected) loop.wake();
  }
  return {
    // Whoever beats from the thread that is blocked cannot do better.
    expect: () => {},
    hold,
    drop({ token, leaseMs }, removeRow) {
      leases.delete(idOf({ token, leaseMs }));
      if (removeRow) gone.set(idOf({ token, leaseMs }), { token, leaseMs });
    },
    async stop() {
      await loop.stop();
      pulse.end();
    },
  };
}
