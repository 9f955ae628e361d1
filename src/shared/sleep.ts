// Waiting that can be cut short: by time, by a wake-up, or by a stop.

export interface Alarm {
  /** Resolves after `ms`, or at the next `ring()`; at once if it rang since the last wait. */
  wait(ms: number): Promise<void>;
  ring(): void;
}

export function makeAlarm(): Alarm {
  let rung = false;
  let wake: (() => void) | undefined;
  return {
    wait(ms) {
      if (rung) {
        rung = false;
        return Promise.resolve();
      }
      return new Promise((resolve) => {
        const timer = setTimeout(done, ms);
        function done(): void {
          clearTimeout(timer);
          wake = undefined;
          rung = false;
          resolve();
        }
        wake = done;
      });
    },
    ring() {
      rung = true;
      wake?.();
    },
  };
}

/** Somewhere between half of `ms` and `ms`: many processes must not move in step. */
export function jitter(ms: number): number {
  return ms / 2 + (Math.random() * ms) / 2;
}

export function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Waits for `done`, but not longer than `ms`; the timer does not outlive the wait. */
export async function within(ms: number, done: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  try {
    await Promise.race([done, new Promise<void>((resolve) => (timer = setTimeout(resolve, ms)))]);
  } finally {
    clearTimeout(timer);
  }
}
