// A payload, for people: what a name says is a secret is masked at every depth, and so is what the paths name.

const SECRET = /token|secret|passw(or)?d|passphrase|authorization|cookie|api[_-]?key|private[_-]?key|credential/i;
export const MASK = "***";
const DEEPEST = 100;

/** By its name. */
export const looksSecret = (name: string): boolean => SECRET.test(name);

export interface Redaction {
  /** Mask what looks like a secret. */
  secrets: boolean;
  /** Fields to mask, from the top: "customer.email"; a list on the way is gone through. */
  paths: readonly string[];
  /** The paths may begin at any depth: for what has something else around it. */
  anywhere?: boolean;
}

type Path = readonly string[];
const SECRETS: Redaction = { secrets: true, paths: [] };

export function redact(value: unknown, { secrets, paths, anywhere = false }: Redaction = SECRETS): unknown {
  const all = paths.map((path) => path.split("."));
  return mask(value, { secrets, roots: anywhere ? all : [] }, anywhere ? [] : all, 0);
}

/** `paths`: those that lead on from here; `roots`: those that may begin here. */
function mask(
  value: unknown,
  rules: { secrets: boolean; roots: readonly Path[] },
  paths: readonly Path[],
  depth: number,
): unknown {
  if (value === null || typeof value !== "object") return value;
  if (!rules.secrets && rules.roots.length + paths.length === 0) return value;
  if (depth > DEEPEST) return MASK;
  if (Array.isArray(value)) return value.map((inner) => mask(inner, rules, paths, depth + 1));
  const entries = Object.entries(value).map(([name, inner]) => {
    const further = [...paths, ...rules.roots].filter(([first]) => first === name).map(([, ...rest]) => rest);
    const isNamed = further.some((rest) => rest.length === 0) && inner !== null;
    const isSecret = rules.secrets && looksSecret(name) && inner !== null && typeof inner !== "boolean";
    return [name, isNamed || isSecret ? MASK : mask(inner, rules, further, depth + 1)] as const;
  });
  // A payload may have a field called __proto__; assigning it would lose it.
  return Object.fromEntries(entries);
}

/** Whether this redaction masks what stands at a path; a number in it may be a place in a list. */
export function isMasked(path: Path, { secrets, paths }: Redaction): boolean {
  if (!secrets && paths.length === 0) return false;
  if (path.length > DEEPEST || (secrets && path.some(looksSecret))) return true;
  return paths.some((masked) => leadsThrough(path, masked.split(".")));
}

/** Whether a path goes to `masked`, or through it to what is inside. */
function leadsThrough([name, ...rest]: Path, masked: Path): boolean {
  if (masked.length === 0) return true;
  if (name === undefined) return false;
  const isStep = name === masked[0] && leadsThrough(rest, masked.slice(1));
  return isStep || (/^-?\d+$/.test(name) && leadsThrough(rest, masked));
}

/** A number with more digits than a double has, in JSON text; strings are passed over. */
const TOKENS = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
/** NUL cannot be stored, so no payload has it. */
const KEPT = /"\\u0000([^"]*)"/g;

/** The same for JSON text, with every digit of its numbers kept. */
export function redactText(json: string, redaction: Redaction = SECRETS): string {
  try {
    const safe = json.replace(TOKENS, (token) =>
      token.startsWith('"') || JSON.stringify(Number(token)) === token ? token : `"\\u0000${token}"`,
    );
    return JSON.stringify(redact(JSON.parse(safe), redaction)).replace(KEPT, "$1");
  } catch {
    // Not whole JSON: nobody can say what in it is a secret.
    return `"${MASK}"`;
  }
}
