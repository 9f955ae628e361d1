// Text from jobs, errors and servers on somebody's terminal: without the control characters that could move the
// cursor, change colours or fake a line.

// oxlint-disable-next-line eslint/no-control-regex -- control characters are what is looked for
const CONTROL = /[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g;

export function printable(text: string): string {
  return text.replace(CONTROL, (character) => (character === "\n" || character === "\t" ? " " : "\uFFFD"));
}

/** Several lines, each made printable. */
export function printableLines(text: string): string {
  return text.split("\n").map(printable).join("\n");
}
