// The count before anything starts: which links are good, which are none and why, which are there twice; each in the order
// in which they were first seen.
import { canonicalise, type LinkFault } from "./canonical.ts";
import type { Entry } from "./formats.ts";

export interface GoodLink {
  url: string;
  title?: string;
}

export interface SortedLinks {
  valid: GoodLink[];
  invalid: { text: string; fault: LinkFault }[];
  /** The same page again, as it stood there. */
  duplicates: string[];
}

const SHOWN = 200;

export function sortLinks(entries: readonly Entry[]): SortedLinks {
  const valid = new Map<string, GoodLink>();
  const invalid = new Map<string, { text: string; fault: LinkFault }>();
  const duplicates: string[] = [];
  for (const { link, title } of entries) {
    const canonical = canonicalise(link);
    if ("fault" in canonical) {
      const text = link.trim().slice(0, SHOWN);
      if (!invalid.has(text)) invalid.set(text, { text, fault: canonical.fault });
      continue;
    }
    const { url } = canonical;
    if (valid.has(url)) duplicates.push(link.trim().slice(0, SHOWN));
    else valid.set(url, title === undefined ? { url } : { url, title });
  }
  return { valid: [...valid.values()], invalid: [...invalid.values()], duplicates };
}
