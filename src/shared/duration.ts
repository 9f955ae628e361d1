// Durations as people write them: "250ms", "30s", "5m", "1h", "7d". Converted once, at the edge, to milliseconds.
// A bare number is refused (is it seconds or milliseconds?), and so is anything negative.
import { OptionInvalid } from "../errors.ts";

/** A number and a unit: `"250ms"`, `"30s"`, `"5m"`, `"1h"`, `"7d"`. */
export type Duration = `${number}${"ms" | "s" | "m" | "h" | "d"}`;

const UNIT_MS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
const FORM = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/;
/** A hundred years: anything longer is a typing mistake, and would overflow a timestamp. */
const LONGEST_MS = 100 * 365 * UNIT_MS.d;

/** A duration in milliseconds; OptionInvalid if it is none, which then points at `name`, the option as its user wrote it. */
export function durationMs(name: string, value: unknown): number {
  const match = typeof value === "string" ? FORM.exec(value.trim()) : null;
  if (!match) {
    const hint =
      typeof value === "number"
        ? `A bare number is ambiguous: write "${String(value)}s" or "${String(value)}ms".`
        : 'Write a number and a unit: "250ms", "30s", "5m", "1h" or "7d".';
    throw new OptionInvalid(`${name} is ${describe(value)}, which is not a duration.`, hint);
  }
  const ms = Number(match[1]) * UNIT_MS[match[2] as keyof typeof UNIT_MS];
  if (ms > LONGEST_MS) {
    throw new OptionInvalid(`${name} is ${describe(value)}, which is longer than 100 years.`, "Write a shorter one.");
  }
  return Math.round(ms);
}

/** A retention: a duration, or "forever" (as null). */
export function retentionMs(name: string, value: unknown): number | null {
  return value === "forever" ? null : durationMs(name, value);
}

/** Milliseconds as a person would write them: 90_000 is "1m 30s". */
export function formatDuration(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)}ms`;
  const parts: string[] = [];
  let left = Math.round(ms / 1_000);
  for (const [unit, size] of [
    ["d", 86_400],
    ["h", 3_600],
    ["m", 60],
    ["s", 1],
  ] as const) {
    const count = Math.floor(left / size);
    if (count > 0) parts.push(`${count}${unit}`);
    left -= count * size;
    if (parts.length === 2) break;
  }
  return parts.join(" ");
}

function describe(value: unknown): string {
  return typeof value === "string" ? JSON.stringify(value) : String(value);
}
