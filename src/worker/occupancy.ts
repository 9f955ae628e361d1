// What runs in this process, across all its workers. A suspect needs the process to itself, so that a crash can be
// told to be its own.

export interface Occupancy {
  readonly running: number;
  /** A suspect is running: nothing else may start. */
  readonly isTaken: boolean;
  enter(count: number): void;
  leave(): void;
  /** True if the process is empty and nobody else reserves it. */
  reserve(): boolean;
  /** The reservation found nothing to run, or what it ran is over. */
  free(): void;
  /** Called whenever something ends. */
  onChange(listener: () => void): () => void;
}

export function makeOccupancy(): Occupancy {
  let running = 0;
  let taken = false;
  const listeners = new Set<() => void>();
  const changed = (): void => {
    for (const listener of listeners) listener();
  };
  return {
    get running() {
      return running;
    },
    get isTaken() {
      return taken;
    },
    enter(count) {
      running += count;
    },
    leave() {
      running -= 1;
      if (running === 0) changed();
    },
    reserve() {
      if (taken || running > 0) return false;
      taken = true;
      return true;
    },
    free() {
      taken = false;
      changed();
    },
    onChange(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  };
}
