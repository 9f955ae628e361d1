// An option that nobody reads is a mistake the user should hear about, with the name they probably meant.
import { OptionInvalid } from "../errors.ts";

export function refuseUnknown(where: string, given: object, known: readonly string[], noun = "option"): void {
  for (const name of Object.keys(given)) {
    if (known.includes(name)) continue;
    const near = known.map((candidate) => ({
      candidate,
      // "prio" is "priority" begun, however many letters are missing.
      distance: isBegun(name, candidate) ? 1 : distance(name.toLowerCase(), candidate.toLowerCase()),
    }));
    near.sort((left, right) => left.distance - right.distance);
    const best = near[0];
    const hint =
      best && best.distance <= Math.max(2, Math.floor(name.length / 2))
        ? `Did you mean "${best.candidate}"?`
        : `Known ${noun}s: ${known.join(", ")}.`;
    throw new OptionInvalid(`${where} has the unknown ${noun} "${name}".`, hint);
  }
}

function isBegun(name: string, candidate: string): boolean {
  return name.length >= 3 && candidate.toLowerCase().startsWith(name.toLowerCase());
}

/** Levenshtein distance, for names of a few letters. */
function distance(left: string, right: string): number {
  let row = Array.from({ length: right.length + 1 }, (_, index) => index);
  for (let i = 1; i <= left.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= right.length; j += 1) {
      next.push(Math.min(row[j]! + 1, next[j - 1]! + 1, row[j - 1]! + (left[i - 1] === right[j - 1] ? 0 : 1)));
    }
    row = next;
  }
  return row[right.length]!;
}
