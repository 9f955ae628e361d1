// Pasted text, cut into what may be links: at white space, at a comma before the next link, and at every comma of what is no
// link (addresses of newspapers have commas in them). Brackets, quotes and punctuation around a link are not part of it,
// except for a bracket that the link itself opened.

const MAX_TOKEN = 4_096;

export function splitText(text: string): string[] {
  return (
    text
      // Markdown and wiki: [title](link), [link title].
      .replaceAll("](", " ")
      .split(/[\s\u200B\uFEFF]+|,(?=https?:\/\/)/iu)
      .flatMap((token) => (/^\W*https?:\/\//i.test(token) ? [token] : token.split(",")))
      .map((token) => bare(token.slice(0, MAX_TOKEN)))
      .filter((token) => /[\p{L}\p{N}]/u.test(token))
  );
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
