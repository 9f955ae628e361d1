// Every loop that must never stop tells, each time it goes round, when it will be heard of next. One that is not heard of
// by then has stopped, and whoever asks is told its name.

export interface Pulse {
  /** Alive, and at the latest again in so many milliseconds. */
  beat(nextInMs: number): void;
  /** It ends because it was asked to. */
  end(): void;
}

export interface Loop {
  name: string;
  /** How long ago it was heard of. */
  silentMs: number;
  isStopped: boolean;
}

export interface Pulses {
  register(name: string): Pulse;
  loops(): Loop[];
  /** Names of loops that should have been heard of. */
  stopped(): string[];
}

/** A busy process is late without being dead. */
const SLACK_MS = 30_000;

export function makePulses(now: () => number = () => performance.now()): Pulses {
  const known = new Map<symbol, { name: string; at: number; dueAt: number }>();
  const loops = (): Loop[] =>
    [...known.values()].map(({ name, at, dueAt }) => ({
      name,
      silentMs: Math.round(now() - at),
      isStopped: now() > dueAt + SLACK_MS,
    }));
  return {
    register(name) {
      const id = Symbol(name);
      known.set(id, { name, at: now(), dueAt: now() });
      return {
        beat(nextInMs) {
          const loop = known.get(id);
          if (!loop) return;
          loop.at = now();
          loop.dueAt = loop.at + nextInMs;
        },
        end: () => void known.delete(id),
      };
    },
    loops,
    stopped: () => loops().flatMap(({ name, isStopped }) => (isStopped ? [name] : [])),
  };
}
