// What runs in this process, across all its workers. A suspect needs the process to itself, so that a crash can be
// told to be its own.

export interface Occupancy {
  readonly running: number;
  /** A suspect is running: nothing else may start. */
  readonly isTaken: boolean;
  /** A claim is about to be sent: false while a suspect has the process. */
  beginClaim(): boolean;
  /** It brought this many. */
  endClaim(count: number): void;
  /** Jobs of an earlier claim are here after all; a reservation of that claim stands. */
  adopt(count: number): void;
  leave(): void;
  /** True if the process is empty, nothing is on its way to it, and nobody else reserves it. */
  reserve(): boolean;
  /** The reservation found nothing to run, or what it ran is over. */
  free(): void;
  /** Called whenever something ends. */
  onChange(listener: () => void): () => void;
}

export function makeOccupancy(): Occupancy {
  let running = 0;
  let claiming = 0;
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
    beginClaim() {
      if (taken) return false;
      claiming += 1;
      return true;
    },
    endClaim(count) {
      claiming -= 1;
      running += count;
    },
    adopt(count) {
      running += count;
    },
    leave() {
      running -= 1;
      if (running === 0) changed();
    },
    reserve() {
      if (taken || running > 0 || claiming > 0) return false;
      taken = true;
      claiming += 1;
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
