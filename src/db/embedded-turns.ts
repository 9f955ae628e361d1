// Whose turn it is on the one session, first come first served: single statements several at a time (they only share
// the way there), a transaction or a script alone.
export interface Turn {
  end(): void;
  /** Nobody joins it any more: what is running may have to be ended, and would take them along. */
  shun(): void;
}

interface Waiting {
  alone: boolean;
  start(turn: Turn): void;
  refuse(reason: Error): void;
}

/** Enough to keep the engine busy; a statement that is still waiting when its time is over never runs. */
const SIDE_BY_SIDE = 32;

export class Turns {
  readonly #queue = new Set<Waiting>();
  #running = 0;
  #alone = false;

  get running(): number {
    return this.#running;
  }

  get waiting(): number {
    return this.#queue.size;
  }

  /** Rejects like `giveUp`, if that comes first. */
  take(alone: boolean, giveUp: Promise<never>): Promise<Turn> {
    return new Promise((resolve, reject) => {
      const waiting: Waiting = { alone, start: resolve, refuse: reject };
      this.#queue.add(waiting);
      this.#serve();
      if (!this.#queue.has(waiting)) return;
      giveUp.catch((reason: Error) => {
        if (!this.#queue.delete(waiting)) return;
        reject(reason);
        this.#serve();
      });
    });
  }

  refuseAll(reason: Error): void {
    const queue = [...this.#queue];
    this.#queue.clear();
    for (const waiting of queue) waiting.refuse(reason);
  }

  #serve(): void {
    for (const waiting of this.#queue) {
      if (this.#alone || this.#running >= (waiting.alone ? 1 : SIDE_BY_SIDE)) return;
      this.#queue.delete(waiting);
      this.#running += 1;
      this.#alone = waiting.alone;
      waiting.start(this.#makeTurn());
    }
  }

  #makeTurn(): Turn {
    let over = false;
    return {
      end: () => {
        if (over) return;
        over = true;
        this.#running -= 1;
        // With others still running it was shared, and may have been shunned by one of them.
        if (this.#running === 0) this.#alone = false;
        this.#serve();
      },
      shun: () => {
        if (!over) this.#alone = true;
      },
    };
  }
}
