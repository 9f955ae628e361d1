// Short notes about what was done, read out by screen readers.
import { signal } from "@preact/signals";
import { CallError } from "../api/call.ts";
import { Icon } from "../ui/icon.tsx";

interface Note {
  id: number;
  text: string;
  to?: string;
  isBad?: boolean;
}

const notes = signal<Note[]>([]);
let made = 0;

export function toast(text: string, more: { to?: string; isBad?: boolean } = {}): void {
  const note = { id: (made += 1), text, ...more };
  notes.value = [...notes.value.slice(-3), note];
  setTimeout(() => drop(note.id), more.isBad ? 12_000 : 6_000);
}

const drop = (id: number): void => {
  notes.value = notes.value.filter((note) => note.id !== id);
};

/** Runs it and says how it went. */
export async function attempt(work: () => Promise<string | { text: string; to: string }>): Promise<boolean> {
  try {
    const said = await work();
    if (typeof said === "string") toast(said);
    else toast(said.text, { to: said.to });
    return true;
  } catch (error) {
    const text = error instanceof CallError ? `${error.message} ${error.hint}` : String(error);
    toast(text, { isBad: true });
    return false;
  }
}

export function Toasts() {
  return (
    <div class="toasts" aria-live="polite" role="status">
      {notes.value.map(({ id, text, to, isBad }) => (
        <div key={id} class={`toast${isBad ? " toast-bad" : ""}`}>
          <span>{text}</span>
          {to && <a href={to}>Open</a>}
          <button type="button" class="button button-bare" aria-label="Close this note" onClick={() => drop(id)}>
            <Icon name="close" />
          </button>
        </div>
      ))}
    </div>
  );
}
