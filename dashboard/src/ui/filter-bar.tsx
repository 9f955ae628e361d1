// The filter: words with names, suggested while one writes. What it says stands in the address.
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { call } from "../api/call.ts";
import { NAMES, STATUSES } from "../filter.ts";

const HINTS: Record<string, string[]> = { attempts: [">=2", "1", "<5"], age: [">5m", "<1h", ">1d"] };

export function FilterBar({ text, wrong, onChange }: { text: string; wrong: string[]; onChange(text: string): void }) {
  const [written, write] = useState(text);
  const [isOpen, open] = useState(false);
  const [at, move] = useState(-1);
  const [values, fill] = useState<Record<string, string[]>>({ status: [...STATUSES], ...HINTS });
  const input = useRef<HTMLInputElement>(null);
  // With the address, and not a moment later: what is typed in that moment would be wiped.
  useLayoutEffect(() => write(text), [text]);
  const know = () => {
    if (values["kind"]) return;
    void Promise.all([call("listKinds"), call("listQueues")]).then(
      ([{ kinds }, { queues }]) =>
        fill((before) => ({ ...before, kind: kinds.map(({ kind }) => kind), queue: queues.map(({ queue }) => queue) })),
      () => undefined,
    );
  };
  const last = /(\S*)$/.exec(written)?.[1] ?? "";
  const [, name, part = ""] = /^(\w+):(.*)$/.exec(last) ?? [];
  const offered =
    name === undefined
      ? NAMES.filter((known) => known.startsWith(last)).map((known) => (known.endsWith(".") ? known : `${known}:`))
      : (values[name] ?? [])
          .filter((value) => value.startsWith(part) && value !== part)
          .map((value) => `${name}:${value}`);
  const shown = isOpen ? offered.slice(0, 8) : [];
  const take = (word: string) => {
    const next = written.slice(0, written.length - last.length) + word;
    const isWhole = !/[:.]$/.test(word);
    write(isWhole ? `${next} ` : next);
    move(-1);
    if (isWhole) onChange(next.trim());
    input.current?.focus();
  };
  const keyed = (event: KeyboardEvent) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      if (shown.length === 0) return;
      event.preventDefault();
      move((before) => (before + (event.key === "ArrowDown" ? 1 : -1) + shown.length) % shown.length);
    } else if (event.key === "Enter") {
      event.preventDefault();
      const chosen = shown[at];
      if (chosen !== undefined) return take(chosen);
      open(false);
      onChange(written.trim());
    } else if (event.key === "Escape") {
      open(false);
      move(-1);
    }
  };
  return (
    <form
      class="filter"
      role="search"
      onSubmit={(event) => {
        event.preventDefault();
        onChange(written.trim());
      }}
    >
      <label class="sr-only" for="filter">
        Filter jobs
      </label>
      <input
        ref={input}
        id="filter"
        data-filter
        class="input"
        type="text"
        role="combobox"
        autoComplete="off"
        spellcheck={false}
        aria-expanded={shown.length > 0}
        aria-controls="filter-words"
        aria-autocomplete="list"
        aria-activedescendant={at >= 0 ? `filter-word-${at}` : undefined}
        aria-describedby={wrong.length > 0 ? "filter-wrong" : undefined}
        placeholder="kind:mail.send attempts:>=2 age:<1h payload.user.id:42, or words of an error"
        value={written}
        onInput={(event) => {
          write(event.currentTarget.value);
          open(true);
          move(-1);
        }}
        onFocus={() => {
          know();
          open(true);
        }}
        onBlur={() => setTimeout(() => open(false), 150)}
        onKeyDown={keyed}
      />
      <ul
        id="filter-words"
        role="listbox"
        aria-label="Suggestions"
        class={`filter-words${shown.length > 0 ? "" : " hidden"}`}
      >
        {shown.map((word, index) => (
          <li
            key={word}
            id={`filter-word-${index}`}
            role="option"
            aria-selected={index === at}
            class="palette-entry"
            onMouseDown={(event) => {
              event.preventDefault();
              take(word);
            }}
          >
            {word}
          </li>
        ))}
      </ul>
      {wrong.length > 0 && (
        <p id="filter-wrong" class="bad" role="alert">
          {wrong.join("; ")}.
        </p>
      )}
    </form>
  );
}
