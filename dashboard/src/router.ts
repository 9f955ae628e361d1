// Where we are, in the part of the address behind the #: it works under any path, and needs nothing of the server. Every
// filter is in it.
import { signal } from "@preact/signals";

export interface Place {
  path: string[];
  query: URLSearchParams;
}

function read(): Place {
  const [path = "", query = ""] = location.hash.replace(/^#\/?/, "").split("?", 2);
  return { path: path.split("/").filter(Boolean).map(decode), query: new URLSearchParams(query) };
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export const place = signal<Place>(read());
addEventListener("hashchange", () => (place.value = read()));

export function href(path: (string | undefined)[], query: Record<string, string | undefined> = {}): string {
  const filled = Object.entries(query).filter((entry): entry is [string, string] => !!entry[1]);
  const search = new URLSearchParams(filled).toString();
  return `#/${path
    .filter((part): part is string => part !== undefined)
    .map(encodeURIComponent)
    .join("/")}${search ? `?${search}` : ""}`;
}

export function go(to: string): void {
  location.hash = to;
}

/** Changes what stands in the address without a step in the history. */
export function replaceQuery(change: Record<string, string | undefined>): void {
  const query = new URLSearchParams(place.value.query);
  for (const [name, value] of Object.entries(change)) {
    if (value) query.set(name, value);
    else query.delete(name);
  }
  const search = query.toString();
  history.replaceState(
    null,
    "",
    `#/${place.value.path.map(encodeURIComponent).join("/")}${search ? `?${search}` : ""}`,
  );
  place.value = read();
}
