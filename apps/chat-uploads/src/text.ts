// Text that people wrote, made storable and safe to show: no NUL, no half characters, no control characters.

export const MAX_TEXT = 10_000;
const CONTROL = /[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]/gu;

export function cleanName(text: string): string {
  return Array.from(text.toWellFormed().replace(CONTROL, " ").trim()).slice(0, 80).join("").trim();
}

/** Line ends and tabs stay. */
export function cleanMessage(text: string): string {
  return text
    .toWellFormed()
    .replaceAll("\r\n", "\n")
    .replace(CONTROL, (found) => (/[\n\t]/.test(found) ? found : ""));
}
