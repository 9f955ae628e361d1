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

function bare(token: string): string {
  let text = token.replace(/^[<([{"'“”„‘’«»*•–—-]+/u, "");
  for (;;) {
    const last = text.at(-1);
    if (last === undefined) return text;
    const opener = PAIRS[last];
    const isPart = opener === undefined ? !/[.,;:!?"'“”‘’«»*]/u.test(last) : count(text, opener) >= count(text, last);
    if (isPart) return text;
    text = text.slice(0, -1);
  }
}

const count = (text: string, mark: string): number => text.split(mark).length - 1;
