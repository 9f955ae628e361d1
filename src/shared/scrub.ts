/**
 * Text for rows and logs without what nobody should read there: passwords in URLs, tokens in headers, tokens of bots.
 * For what others wrote into their errors; it finds the shapes that turn up most, and not every secret.
 */
export function scrub(text: string): string {
  return text
    .replace(/\b([a-z][a-z0-9+.-]{0,20}:\/\/[^\s:/@]{0,200}):[^\s@/]{1,500}@/gi, "$1:***@")
    .replace(/\b(Bearer|Basic)\s{1,5}[A-Za-z0-9._~+/=-]{8,}/gi, "$1 ***")
    .replace(/(?<!\d)\d{6,12}:[A-Za-z0-9_-]{30,}/g, "***");
}
