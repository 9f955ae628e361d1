// Comma separated values as people's exports have them (RFC 4180): quotes, quotes in quotes, line breaks in quotes, a byte
// order mark, and semicolons or tabs instead of commas.

export function readCsv(text: string): string[][] {
  const clean = text.replace(/^\uFEFF/, "");
  const separator = separatorOf(clean);
  const rows: string[][] = [];
  let row: string[] = [];
  let start = 0;
  let at = 0;
  const endCell = (cell: string): void => void row.push(cell);
  const endRow = (): void => {
    if (row.length > 1 || row[0] !== "") rows.push(row);
    row = [];
  };
  while (at <= clean.length) {
    if (clean[at] === '"' && at === start) {
      let cell = "";
      at += 1;
      for (;;) {
        const end = clean.indexOf('"', at);
        // One that never ends goes to the end of the text.
        cell += clean.slice(at, end === -1 ? undefined : end);
        at = end === -1 ? clean.length : end + 1;
        if (end === -1 || clean[at] !== '"') break;
        cell += '"';
        at += 1;
      }
      while (at < clean.length && clean[at] !== separator && clean[at] !== "\n" && clean[at] !== "\r") at += 1;
      endCell(cell);
    } else {
      while (at < clean.length && clean[at] !== separator && clean[at] !== "\n" && clean[at] !== "\r") at += 1;
      endCell(clean.slice(start, at));
    }
    if (clean[at] !== separator) {
      endRow();
      if (clean[at] === "\r" && clean[at + 1] === "\n") at += 1;
    }
    at += 1;
    start = at;
  }
  return rows;
}

function separatorOf(text: string): string {
  const first = text
    .slice(0, 10_000)
    .split(/\r?\n/, 1)[0]!
    .replaceAll(/"[^"]*"/g, "");
  const found = [",", ";", "\t"].map((mark) => ({ mark, count: first.split(mark).length }));
  return found.sort((a, b) => b.count - a.count)[0]!.mark;
}
