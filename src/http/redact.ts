// A payload, for people who may look but not act: what a name says is a secret is masked, at every depth.

const SECRET = /token|secret|passw(or)?d|passphrase|authorization|cookie|api[_-]?key|private[_-]?key|credential/i;
const MASK = "***";
const DEEPEST = 100;

export function redact(value: unknown, depth = 0): unknown {
  if (value === null || typeof value !== "object") return value;
  if (depth > DEEPEST) return MASK;
  if (Array.isArray(value)) return value.map((inner) => redact(inner, depth + 1));
  const entries = Object.entries(value).map(([name, inner]) => {
    const isSecret = SECRET.test(name) && inner !== null && typeof inner !== "boolean";
    return [name, isSecret ? MASK : redact(inner, depth + 1)] as const;
  });
  // A payload may have a field called __proto__; assigning it would lose it.
  return Object.fromEntries(entries);
}

/** A number with more digits than a double has, in JSON text; strings are passed over. */
const TOKENS = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
/** NUL cannot be stored, so no payload has it. */
const KEPT = /"\\u0000([^"]*)"/g;

/** The same for JSON text, with every digit of its numbers kept. */
export function redactText(json: string): string {
  try {
    const safe = json.replace(TOKENS, (token) =>
      token.startsWith('"') || JSON.stringify(Number(token)) === token ? token : `"\\u0000${token}"`,
    );
    return JSON.stringify(redact(JSON.parse(safe))).replace(KEPT, "$1");
  } catch {
    // Not whole JSON: nobody can say what in it is a secret.
    return `"${MASK}"`;
  }
}
