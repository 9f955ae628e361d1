// What the judge and its rules share.

/** One look at one thing: `say` is the sentence for when it does not hold. */
export type Check = (invariant: string, holds: boolean, say: () => string) => void;

export function groupBy<T, K>(list: readonly T[], by: (entry: T) => K): Map<K, T[]> {
  const groups = new Map<K, T[]>();
  for (const entry of list) {
    const key = by(entry);
    const group = groups.get(key);
    if (group) group.push(entry);
    else groups.set(key, [entry]);
  }
  return groups;
}
