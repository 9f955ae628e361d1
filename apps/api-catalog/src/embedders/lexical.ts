// An embedder without a model: words and pieces of words, hashed to places of a vector. Texts that share words, or words
// that are spelled alike, are near each other. It knows no synonyms and no languages; it needs no network and is there at
// once.
import type { Embedder } from "./embedder.ts";

export const LEXICAL_DIMENSION = 512;

const COMMON = new Set(
  "a an and are as at be by can do does for from has have how i if in into is it its my of on or that the their them then there these this to up use used using was what when where which who will with you your".split(
    " ",
  ),
);
const PIECE_WEIGHT = 0.35;
/** So that a long description does not drown what the first lines say. */
const HEAD_LINES = 4;
const HEAD_WEIGHT = 3;

export function makeLexicalEmbedder(dimension = LEXICAL_DIMENSION): Embedder {
  return {
    name: "lexical:1",
    mostTexts: 1_000,
    embed: (texts) => Promise.resolve(texts.map((text) => lexicalVector(text, dimension))),
  };
}

export function lexicalVector(text: string, dimension: number): Float32Array {
  const counts = new Map<string, number>();
  const add = (feature: string, weight: number): void => {
    counts.set(feature, (counts.get(feature) ?? 0) + weight);
  };
  for (const [line, content] of text.split("\n").entries()) {
    const weight = line < HEAD_LINES ? HEAD_WEIGHT : 1;
    for (const word of wordsOf(content)) {
      add(word, weight);
      const framed = `^${word}$`;
      for (let at = 0; at + 3 <= framed.length; at += 1) add(`~${framed.slice(at, at + 3)}`, weight * PIECE_WEIGHT);
    }
  }
  const vector = new Float32Array(dimension);
  for (const [feature, count] of counts) {
    const hash = fnv1a(feature);
    const place = hash % dimension;
    // The sign is of a bit that the place does not use, so that features that meet cancel out as often as they add up.
    const sign = (hash >>> 31) & 1 ? -1 : 1;
    const weight = feature.startsWith("~") ? PIECE_WEIGHT : 1;
    vector[place] = vector[place]! + sign * weight * (1 + Math.log(1 + count));
  }
  return vector;
}

export function wordsOf(text: string): string[] {
  return text
    .replace(/([a-z0-9])([A-Z])/g, "$1 $2")
    .toLowerCase()
    .split(/[^\p{L}\p{N}]+/u)
    .filter((word) => word.length > 1 && !COMMON.has(word))
    .map(stem);
}

/** Only the most common endings; what is cut wrongly is cut the same way everywhere. */
function stem(word: string): string {
  if (word.length > 5 && word.endsWith("ing")) return word.slice(0, -3);
  if (word.length > 4 && word.endsWith("ies")) return `${word.slice(0, -3)}y`;
  if (word.length > 4 && word.endsWith("ed")) return word.slice(0, -2);
  if (word.length > 4 && word.endsWith("es")) return word.slice(0, -2);
  if (word.length > 3 && word.endsWith("s") && !word.endsWith("ss")) return word.slice(0, -1);
  if (word.length > 4 && word.endsWith("e")) return word.slice(0, -1);
  return word;
}

function fnv1a(text: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at += 1) {
    hash ^= text.charCodeAt(at);
    hash = Math.imul(hash, 0x01000193);
  }
  // FNV's low bits are weak for short texts.
  hash ^= hash >>> 15;
  hash = Math.imul(hash, 0x2c1b3c6d);
  hash ^= hash >>> 13;
  return hash >>> 0;
}
