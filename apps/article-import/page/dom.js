// Lists that change only where something has changed, so that neither the focus nor the place in them is lost.
import { fill, make } from "/apps/page.js";

/** A list whose entries are kept as long as they show the same: only those that changed are made anew. */
export function fillList(list, entries, keyOf, build) {
  const before = new Map([...list.children].map((child) => [child.dataset.key, child]));
  const after = entries.map((entry) => {
    const key = String(keyOf(entry));
    const known = before.get(key);
    const element = known ?? make("li", { "data-key": key });
    fill(element, entry, () => build(entry));
    return element;
  });
  if (after.length === list.children.length && after.every((child, at) => list.children[at] === child)) return;
  list.replaceChildren(...after);
}
