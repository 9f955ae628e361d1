// JSON text, folded, as it is: no number is rounded, because none is made into one.
import { useMemo, useState } from "preact/hooks";

type Node =
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

const SHOWN = 50;

export function Json({ text, label }: { text: string; label: string }) {
  const node = useMemo(() => {
    try {
      return parseJson(text);
    } catch {
      return null;
    }
  }, [text]);
  return (
    <div class="json" role="region" aria-label={label} tabIndex={0}>
      {node ? <Branch node={node} depth={0} /> : <pre>{text}</pre>}
    </div>
  );
}

function Branch({ node, depth, name }: { node: Node; depth: number; name?: string }) {
  const [shown, show] = useState(SHOWN);
  const label = name === undefined ? null : <span class="json-name">{name}: </span>;
  if (node.type === "leaf") {
    return (
      <div class="json-line">
        {label}
        <span class={`json-${node.look}`}>{node.text}</span>
      </div>
    );
  }
  const entries: [string, Node][] =
    node.type === "map" ? node.entries : node.items.map((item, index) => [String(index), item]);
  const [begin, end] = node.type === "map" ? ["{", "}"] : ["[", "]"];
  if (entries.length === 0) {
    return (
      <div class="json-line">
        {label}
        {begin}
        {end}
      </div>
    );
  }
  return (
    <details class="json-branch" open={depth < 2}>
      <summary>
        {label}
        {begin} <span class="quiet">{entries.length}</span> {end}
      </summary>
      <div class="json-inside">
        {entries.slice(0, shown).map(([key, inner]) => (
          <Branch key={key} name={key} node={inner} depth={depth + 1} />
        ))}
        {entries.length > shown && (
          <button type="button" class="button button-small" onClick={() => show(shown + 500)}>
            {entries.length - shown} more
          </button>
        )}
      </div>
    </details>
  );
}
