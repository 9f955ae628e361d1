// Rows as CSV (RFC 4180) that is safe to open: a text that a spreadsheet would take for a formula gets an apostrophe in front.

export type Cell = string | number | null;

/** How formulas begin, in any of the forms that spreadsheets understand; a tab or a return may come before them. */
const FORMULA = /^\s*[=+\-@\uff1d\uff0b\uff0d\uff20|%]|^[\t\r\n]/;

export const csvLine = (cells: readonly Cell[]): string => `${cells.map(toText).join(",")}\r\n`;

function toText(cell: Cell): string {
  if (cell === null) return "";
  if (typeof cell === "number") return String(cell);
  const safe = FORMULA.test(cell) ? `'${cell}` : cell;
  return /[",\r\n']/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
