// The leases of a process in shared memory: the main thread writes them down, the heartbeat thread reads them. Writing
// wakes nobody, so that a claim costs no message between threads, and a main thread that blocks right afterwards has
// already said what it holds. What it asks for is written down before it asks: it may be blocked when the answer comes.
import type { LeaseId } from "../store/jobs/beat.ts";

const CAPACITY = 8_192;
const FREE = 0;
const HELD = 1;
/** All its jobs are settled: its row should go. */
const FINISHED = 2;
/** Asked for; nobody knows yet whether the claim took anything. */
const EXPECTED = 3;

const HEAD_BYTES = 16;
export const BOARD_BYTES = HEAD_BYTES + CAPACITY * (8 + 8 + 4 + 4);

export interface HeldOnBoard extends LeaseId {
  /** Milliseconds of the shared clock. */
  heldAt: number;
  /** Nothing of it runs yet. */
  isExpected: boolean;
}

interface Views {
  /** [0] nanoseconds of the shared clock at the main thread's last sign of life. */
  life: BigInt64Array;
  /** [2] the shortest lease that the thread expects, 0 while it sleeps. */
  head: Int32Array;
  tokens: BigInt64Array;
  heldAts: Float64Array;
  leases: Int32Array;
  states: Int32Array;
}

function viewsOf(memory: SharedArrayBuffer): Views {
  let offset = HEAD_BYTES;
  const next = (bytes: number): number => {
    const at = offset;
    offset += CAPACITY * bytes;
    return at;
  };
  return {
    life: new BigInt64Array(memory, 0, 1),
    head: new Int32Array(memory, 0, 4),
    tokens: new BigInt64Array(memory, next(8), CAPACITY),
    heldAts: new Float64Array(memory, next(8), CAPACITY),
    leases: new Int32Array(memory, next(4), CAPACITY),
    states: new Int32Array(memory, next(4), CAPACITY),
  };
}

/** The main thread's side. */
export interface BoardWriter {
  showLife(nowMs: number): void;
  /** False: the board is full. */
  expect(lease: LeaseId, nowMs: number): boolean;
  hold(lease: LeaseId, nowMs: number): boolean;
  drop(lease: LeaseId, removeRow: boolean): void;
  /** True if the thread would not look in time by itself. */
  needsWaking(leaseMs: number): boolean;
}

export function writeBoard(memory: SharedArrayBuffer): BoardWriter {
  const { life, head, tokens, heldAts, leases, states } = viewsOf(memory);
  const places = new Map<string, number>();
  const free = Array.from({ length: CAPACITY }, (_, index) => CAPACITY - 1 - index);
  let leaving: number[] = [];

  function takePlace(): number | undefined {
    if (free.length === 0) {
      // The thread frees a place once the row is gone.
      leaving = leaving.filter((place) => {
        if (Atomics.load(states, place) !== FREE) return true;
        free.push(place);
        return false;
      });
    }
    return free.pop();
  }

  function write({ token, leaseMs }: LeaseId, nowMs: number, state: number): boolean {
    const id = `${token}/${leaseMs}`;
    const known = places.get(id);
    const place = known ?? takePlace();
    if (place === undefined) return false;
    heldAts[place] = nowMs;
    if (known === undefined) {
      places.set(id, place);
      leases[place] = leaseMs;
      Atomics.store(tokens, place, BigInt(token));
    }
    Atomics.store(states, place, state);
    return true;
  }

  return {
    showLife: (nowMs) => void Atomics.store(life, 0, BigInt(Math.round(nowMs * 1e6))),
    expect: (lease, nowMs) => write(lease, nowMs, EXPECTED),
    hold: (lease, nowMs) => write(lease, nowMs, HELD),
    drop({ token, leaseMs }, removeRow) {
      const place = places.get(`${token}/${leaseMs}`);
      if (place === undefined) return;
      places.delete(`${token}/${leaseMs}`);
      Atomics.store(states, place, removeRow ? FINISHED : FREE);
      if (removeRow) leaving.push(place);
      else free.push(place);
    },
    needsWaking(leaseMs) {
      const expected = Atomics.load(head, 2);
      return expected === 0 || leaseMs < expected;
    },
  };
}

/** The heartbeat thread's side. */
export interface BoardReader {
  lifeMs(): number;
  held(): HeldOnBoard[];
  finished(): { lease: LeaseId; forget(): void }[];
  /** Says what the main thread need not wake us for; 0: we sleep until we are woken. */
  expect(shortestLeaseMs: number): void;
}

export function readBoard(memory: SharedArrayBuffer): BoardReader {
  const { life, head, tokens, heldAts, leases, states } = viewsOf(memory);

  function at(place: number, state: number): HeldOnBoard | undefined {
    if (Atomics.load(states, place) !== state) return undefined;
    const token = Atomics.load(tokens, place);
    const isExpected = state === EXPECTED;
    const lease = { token: token.toString(), leaseMs: leases[place]!, heldAt: heldAts[place]!, isExpected };
    // The place may have been given to another lease while we read it.
    return Atomics.load(states, place) === state && Atomics.load(tokens, place) === token ? lease : undefined;
  }

  return {
    lifeMs: () => Number(Atomics.load(life, 0)) / 1e6,
    held() {
      const found: HeldOnBoard[] = [];
      for (let place = 0; place < CAPACITY; place += 1) {
        // In this order: what is expected may be held a moment later, and not the other way round.
        const lease = at(place, EXPECTED) ?? at(place, HELD);
        if (lease) found.push(lease);
      }
      return found;
    },
    finished() {
      const found: { lease: LeaseId; forget(): void }[] = [];
      for (let place = 0; place < CAPACITY; place += 1) {
        const lease = at(place, FINISHED);
        if (lease) found.push({ lease, forget: () => void Atomics.store(states, place, FREE) });
      }
      return found;
    },
    expect: (shortestLeaseMs) => void Atomics.store(head, 2, shortestLeaseMs),
  };
}
