// Elements, made so that whatever a text holds stays text; and lists that change only where something has changed, so that
// neither the focus nor the place in them is lost.

export function make(name, attributes, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes ?? {})) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (value === true) element.setAttribute(key, "");
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(key, value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

const shown = new WeakMap();

/** Replaces the children only if what they show has changed. */
export function fill(element, what, build) {
  const text = JSON.stringify(what);
  if (shown.get(element) === text) return;
  shown.set(element, text);
  const { activeElement } = document;
  const focused = element.contains(activeElement) ? activeElement.dataset.id : undefined;
  element.replaceChildren(...[build()].flat().filter(Boolean));
  if (focused !== undefined) element.querySelector(`[data-id="${CSS.escape(focused)}"]`)?.focus();
}

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
