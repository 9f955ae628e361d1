// JSON text taken apart and written again with every digit of its numbers: none of them is made into a number.
import { looksSecret, MASK } from "#src/http/redact.js";

export type Node =
  | { type: "leaf"; text: string; look: "text" | "figure" | "word" }
  | { type: "list"; items: Node[] }
  | { type: "map"; entries: [string, Node][] };

const TOKEN = /\s*([{}[\],:]|"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)/y;

export function parseJson(text: string): Node {
  TOKEN.lastIndex = 0;
  const next = (): string => {
    const found = TOKEN.exec(text)?.[1];
    if (found === undefined) throw new SyntaxError("not JSON");
    return found;
  };
  const value = (token: string): Node => {
    if (token === "{") {
      const entries: [string, Node][] = [];
      for (let name = next(); name !== "}"; name = next()) {
        if (name === ",") continue;
        next();
        entries.push([JSON.parse(name) as string, value(next())]);
      }
      return { type: "map", entries };
    }
    if (token === "[") {
      const items: Node[] = [];
      for (let item = next(); item !== "]"; item = next()) if (item !== ",") items.push(value(item));
      return { type: "list", items };
    }
    const look = token.startsWith('"') ? "text" : /^[-\d]/.test(token) ? "figure" : "word";
    return { type: "leaf", text: token, look };
  };
  return value(next());
}

/** The same, on lines of their own. */
export function prettyJson(text: string): string {
  const write = (node: Node, indent: string): string => {
    if (node.type === "leaf") return node.text;
    const [begin, end] = node.type === "map" ? "{}" : "[]";
    const deeper = `${indent}  `;
    const inside =
      node.type === "map"
        ? node.entries.map(([name, inner]) => `${JSON.stringify(name)}: ${write(inner, deeper)}`)
        : node.items.map((inner) => write(inner, deeper));
    return inside.length === 0
      ? `${begin}${end}`
      : `${begin}\n${deeper}${inside.join(`,\n${deeper}`)}\n${indent}${end}`;
  };
  return write(parseJson(text), "");
}

/** Where something was masked before it came here: "customer.email". */
export function maskedPaths(text: string): string[] {
  const look = (node: Node, path: string): string[] => {
    if (node.type === "leaf") return node.text === JSON.stringify(MASK) ? [path] : [];
    const inside =
      node.type === "map" ? node.entries : node.items.map((inner, at): [string, Node] => [String(at), inner]);
    return inside.flatMap(([name, inner]) => look(inner, path === "" ? name : `${path}.${name}`));
  };
  return look(parseJson(text), "");
}

/** What is under a name that says that it is a secret, as the server sees it. */
export const isSecret = (name: string | undefined, node: Node): boolean =>
  name !== undefined &&
  looksSecret(name) &&
  !(node.type === "leaf" && (node.look === "word" || node.text === JSON.stringify(MASK)));
