// SIGINT, SIGTERM and SIGHUP (the terminal was closed). The first asks for a clean stop; the second ends the process now, whatever it is doing: the jobs
// it ran are recovered as after a crash.
import { EXIT } from "./exit-codes.ts";

export type StopSignal = "SIGINT" | "SIGTERM" | "SIGHUP";

export interface Signals {
  /** Resolves at the first one. */
  readonly first: Promise<StopSignal>;
  readonly received: boolean;
}

/** npm hands on the Ctrl-C that the terminal has already sent to everybody: two within this time are one. */
const ECHO_MS = 300;

export function watchSignals(onSecond: (signal: StopSignal) => void): Signals {
  let firstAt: number | undefined;
  let resolve: (signal: StopSignal) => void;
  const first = new Promise<StopSignal>((done) => (resolve = done));
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.on(signal, () => {
      const now = performance.now();
      if (firstAt === undefined) {
        firstAt = now;
        resolve(signal);
      } else if (now - firstAt > ECHO_MS) {
        onSecond(signal);
        process.exit(signal === "SIGINT" ? EXIT.interrupted : EXIT.terminated);
      }
    });
  }
  return {
    first,
    get received() {
      return firstAt !== undefined;
    },
  };
}
