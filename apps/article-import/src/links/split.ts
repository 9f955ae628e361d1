// Pasted text, cut into what may be links: at white space, at a comma before the next link, and at every comma of what is no
// link (addresses of newspapers have commas in them). Brackets, quotes and punctuation around a link are not part of it,
// except for a bracket that the link itself opened.

const MAX_TOKEN = 4_096;

/** At most so many. */
export function splitText(text: string, most = Infinity): string[] {
  const tokens: string[] = [];
  for (const token of rawTokens(text)) {
    const clean = bare(token.slice(0, MAX_TOKEN));
    if (!/[\p{L}\p{N}]/u.test(clean)) continue;
    if (tokens.length >= most) break;
    tokens.push(clean);
  }
  return tokens;
}

function* rawTokens(text: string): Generator<string> {
  // Markdown and wiki: [title](link), [link title].
  for (const [piece] of text.replaceAll("](", " ").matchAll(/[^\s\u200B\uFEFF]+/gu)) {
    if (/^\W*https?:\/\//i.test(piece)) yield* piece.split(/,(?=https?:\/\/)/i);
    else for (const [part] of piece.matchAll(/[^,]+/g)) yield* part === "" ? [] : [part];
  }
}

const PAIRS: Readonly<Record<string, string>> = { ")": "(", "]": "[", "}": "{", ">": "<" };

/** Counted once, not anew for each mark that goes: a token may be thousands of brackets. */
function bare(token: string): string {
  const text = token.replace(/^[<([{"'“”„‘’«»*•–—-]+/u, "");
  const counts = new Map<string, number>();
  for (const mark of text) counts.set(mark, (counts.get(mark) ?? 0) + 1);
  let end = text.length;
  for (; end > 0; end -= 1) {
    const last = text[end - 1]!;
    const opener = PAIRS[last];
    const closers = counts.get(last) ?? 0;
    const isPart = opener === undefined ? !/[.,;:!?"'“”‘’«»*]/u.test(last) : (counts.get(opener) ?? 0) >= closers;
    if (isPart) break;
    counts.set(last, closers - 1);
  }
  return text.slice(0, end);
}
