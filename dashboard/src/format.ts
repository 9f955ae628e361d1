// Figures as people read them.
import { signal } from "@preact/signals";
import { clockOffset } from "./api/call.ts";
import { span } from "./span.ts";

export { shortSpan, span } from "./span.ts";

/** The server's clock, once a second while somebody looks. */
export const now = signal(Date.now());
setInterval(() => {
  if (!document.hidden) now.value = Date.now() + clockOffset.value;
}, 1_000);

const ZONE = "holdfast-zone";
export const zone = signal<"local" | "UTC">(localStorage.getItem(ZONE) === "UTC" ? "UTC" : "local");
export function toggleZone(): void {
  zone.value = zone.value === "local" ? "UTC" : "local";
  localStorage.setItem(ZONE, zone.value);
}

/** For how long something took: "12 ms", "3.4 s", "3m 12s". */
export function took(ms: number | null): string {
  if (ms === null) return "–";
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 10_000) return `${(ms / 1_000).toFixed(1)} s`;
  return span(ms);
}

const whole = new Intl.NumberFormat("en");
const compact = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
export const count = (value: number): string => (value < 10_000 ? whole.format(value) : compact.format(value));
export const exact = (value: number): string => whole.format(value);

export function bytes(value: number): string {
  const units = ["B", "KB", "MB", "GB", "TB"];
  let left = value;
  let unit = 0;
  while (left >= 1_000 && unit < units.length - 1) {
    left /= 1_024;
    unit += 1;
  }
  return `${unit === 0 || left >= 100 ? Math.round(left) : left.toFixed(1)} ${units[unit]}`;
}

export function time(iso: string | number, withDate = true): string {
  const date = new Date(iso);
  const options: Intl.DateTimeFormatOptions = {
    hour: "2-digit",
    minute: "2-digit",
    second: "2-digit",
    hour12: false,
    ...(withDate ? { day: "2-digit", month: "short" } : {}),
    ...(zone.value === "UTC" ? { timeZone: "UTC" } : {}),
  };
  return new Intl.DateTimeFormat("en-GB", options).format(date) + (zone.value === "UTC" ? " UTC" : "");
}

export const plural = (value: number, word: string): string => `${exact(value)} ${word}${value === 1 ? "" : "s"}`;
export const shortId = (id: string): string => `${id.slice(0, 8)}…${id.slice(-4)}`;
export const firstLine = (text: string): string => text.split("\n", 1)[0]!;
