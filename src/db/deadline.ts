// A timeout that is fair to whoever answered in time. When this process was too busy to look (the timer fires late),
// the answer may be waiting in the socket: timers run before it is read. Such a timer gets one short extra turn.

const LATE_MS = 50;
const EXTRA_MS = 250;

/** Calls `onTime` once, `ms` from now. The function returned prevents that. */
export function startDeadline(ms: number, onTime: () => void): () => void {
  const due = performance.now() + ms;
  let timer = setTimeout(() => {
    if (performance.now() - due > LATE_MS) timer = setTimeout(onTime, EXTRA_MS);
    else onTime();
  }, ms);
  return () => clearTimeout(timer);
}
