// JSON text, folded, as it is: no number is rounded, because none is made into one. What looks like a secret is covered until
// somebody asks for it: a screen has more readers than its user.
import { useMemo, useState } from "preact/hooks";
import { isSecret, type Node, parseJson } from "../json-text.ts";

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
  const [isCovered, cover] = useState(isSecret(name, node));
  const label = name === undefined ? null : <span class="json-name">{name}: </span>;
  if (isCovered) {
    return (
      <div class="json-line">
        {label}
        <button type="button" class="link" onClick={() => cover(false)}>
          show<span class="sr-only"> {name}</span>
        </button>
      </div>
    );
  }
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
