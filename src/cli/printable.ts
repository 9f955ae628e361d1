// Text from jobs, errors and servers on somebody's terminal: without the control characters that could move the
// cursor, change colours or fake a line.

const CONTROL = /[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]/gu;

export function printable(text: string): string {
  return text.replace(CONTROL, (character) => (character === "\n" || character === "\t" ? " " : "\uFFFD"));
}

/** Several lines, each made printable. */
export function printableLines(text: string): string {
  return text.split("\n").map(printable).join("\n");
}
