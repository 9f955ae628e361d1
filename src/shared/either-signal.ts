// Signals that are aborted with others. What AbortSignal.any() is given, it does not hold: on Node 20 a timeout that nobody
// else knows of is collected as garbage, and its time never comes.

const given = new WeakMap<AbortSignal, readonly AbortSignal[]>();

/** Aborted with the first of these; they live as long as it does. */
export function eitherSignal(...signals: AbortSignal[]): AbortSignal {
  const either = AbortSignal.any(signals);
  given.set(either, signals);
  return either;
}

/** Aborted with the first of these, or after so long. */
export function orAfter(ms: number, ...signals: AbortSignal[]): AbortSignal {
  return eitherSignal(...signals, AbortSignal.timeout(ms));
}
