// Filters that somebody gave a name, kept in this browser. One that is sent to somebody else is an address, not this.
import { signal } from "@preact/signals";
import { useState } from "preact/hooks";
import { href } from "../router.ts";
import { Icon } from "../ui/icon.tsx";

interface View {
  name: string;
  q: string;
}

const STORE = "holdfast-views";
const MOST = 20;

const views = signal<View[]>(read());

function read(): View[] {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(STORE) ?? "[]");
    const isView = (view: unknown): view is View =>
      typeof view === "object" && view !== null && "name" in view && "q" in view;
    return Array.isArray(kept) ? kept.filter(isView).slice(0, MOST) : [];
  } catch {
    return [];
  }
}

function keep(next: View[]): void {
  views.value = next;
  localStorage.setItem(STORE, JSON.stringify(next));
}

export function SavedViews({ text }: { text: string }) {
  const [name, write] = useState<string | null>(null);
  const isKept = views.value.some(({ q }) => q === text);
  const save = () => {
    const called = name?.trim() ?? "";
    if (called !== "")
      keep([...views.value.filter((view) => view.name !== called), { name: called, q: text }].slice(-MOST));
    write(null);
  };
  if (views.value.length === 0 && text === "") return null;
  return (
    <div class="row row-tight views" role="group" aria-label="Saved views">
      {views.value.map((view) => (
        <span key={view.name} class="view">
          <a href={href(["jobs"], { q: view.q })} aria-current={view.q === text ? "true" : undefined} title={view.q}>
            {view.name}
          </a>
          <button
            type="button"
            class="button button-bare"
            aria-label={`Forget the view ${view.name}`}
            onClick={() => keep(views.value.filter((other) => other !== view))}
          >
            <Icon name="close" />
          </button>
        </span>
      ))}
      {name !== null ? (
        <form
          class="row row-tight"
          onSubmit={(event) => {
            event.preventDefault();
            save();
          }}
        >
          <label>
            <span class="sr-only">Name of this view</span>
            <input
              class="input input-view"
              type="text"
              maxLength={40}
              placeholder="Its name"
              value={name}
              // oxlint-disable-next-line jsx-a11y/no-autofocus -- it comes because somebody asked for it
              autoFocus
              onInput={(event) => write(event.currentTarget.value)}
              onKeyDown={(event) => event.key === "Escape" && write(null)}
            />
          </label>
          <button type="submit" class="button button-small">
            Keep
          </button>
        </form>
      ) : (
        text !== "" &&
        !isKept && (
          <button type="button" class="button button-small" onClick={() => write("")}>
            Save this view
          </button>
        )
      )}
    </div>
  );
}
