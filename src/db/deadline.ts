// A timeout that is fair to whoever answered in time. When this process was too busy to look, the answer may be waiting in the
// socket: timers run before that is read. So a timer that is late gets some more time, and one that is not, a look at the sockets.

const LATE_MS = 50;
const EXTRA_MS = 250;
/** A process that is always late must not wait for ever. */
const MOST_EXTRAS = 4;

/** Calls `onTime` once, `ms` from now. The function returned prevents that. */
export function startDeadline(ms: number, onTime: () => void): () => void {
  let due = performance.now() + ms;
  let extras = 0;
  let timer = setTimeout(fire, ms);
  let look: NodeJS.Immediate | undefined;
  function fire(): void {
    const isLate = performance.now() - due > LATE_MS;
    if (isLate && extras < MOST_EXTRAS) {
      extras += 1;
      due = performance.now() + EXTRA_MS;
      timer = setTimeout(fire, EXTRA_MS);
    } else look = setImmediate(onTime);
  }
  return () => {
    clearTimeout(timer);
    clearImmediate(look);
  };
}
