// The Range header, as far as it is served: one range of bytes. Anything else asks for everything, as the standard
// allows; a range that is not in the content is refused.
import type { Range } from "../inbox/open-content.ts";

/** null: everything. "unsatisfiable": 416. */
export function readRange(header: string | null, size: number): Required<Range> | null | "unsatisfiable" {
  const match = /^bytes=(\d*)-(\d*)$/i.exec(header?.trim() ?? "");
  if (!match || (match[1] === "" && match[2] === "")) return null;
  const [, first = "", last = ""] = match;
  if (first === "") {
    const length = Math.min(Number(last), size);
    return length === 0 ? "unsatisfiable" : { start: size - length, end: size };
  }
  const start = Number(first);
  const end = last === "" ? size : Math.min(Number(last) + 1, size);
  if (start >= size) return "unsatisfiable";
  // "5-2" is no range at all.
  return end <= start ? null : { start, end };
}
