// A page that shows its consent dialogue instead of its article: few words, and those are about consent. It is saved all
// the same, with a warning: the reader may know better.
import { CONSENT_PHRASES } from "./consent-phrases.ts";

const FEW_WORDS = 300;

export function isConsentWall({ text, words }: { text: string; words: number }): boolean {
  if (words >= FEW_WORDS) return false;
  const lower = text.toLowerCase().replaceAll(/\s+/g, " ");
  return CONSENT_PHRASES.some((phrase) => lower.includes(phrase));
}
