// ⌘K: everything by its name, or a job by its id.
import { signal } from "@preact/signals";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { call } from "../api/call.ts";
import { togglePause } from "../api/live.ts";
import { toggleZone } from "../format.ts";
import { go, href } from "../router.ts";
import { SCREENS } from "../screens.ts";
import { Dialog } from "../ui/dialog.tsx";
import { isHelpOpen } from "./help.tsx";
import { choose, THEMES } from "./theme.ts";

export const isPaletteOpen = signal(false);

interface Entry {
  name: string;
  note: string;
  run(): void;
}

const UUID = /^[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}$/i;

const FIXED: Entry[] = [
  ...SCREENS.map(({ path, title, key }) => ({ name: title, note: `Page · g ${key}`, run: () => go(`#/${path}`) })),
  { name: "Pause or go on", note: "Live · p", run: togglePause },
  { name: "Switch between local time and UTC", note: "Times", run: toggleZone },
  ...THEMES.map((theme) => ({ name: `Colours: ${theme}`, note: "Theme · t", run: () => choose(theme) })),
  { name: "Keys and help", note: "Help · ?", run: () => (isHelpOpen.value = true) },
];

export function Palette() {
  return isPaletteOpen.value ? <Open /> : null;
}

function Open() {
  const [text, write] = useState("");
  const [at, move] = useState(0);
  const [found, find] = useState<Entry[]>([]);
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => {
    input.current?.focus();
    void Promise.all([call("listQueues"), call("listKinds")]).then(
      ([{ queues }, { kinds }]) =>
        find([
          ...queues.map(({ queue }) => ({ name: queue, note: "Queue", run: () => go(href(["queues", queue])) })),
          ...kinds.flatMap(({ kind }) => [
            { name: kind, note: "Jobs of this kind", run: () => go(href(["jobs"], { q: `kind:${kind}` })) },
            { name: `Enqueue ${kind}`, note: "Action", run: () => go(href(["enqueue"], { kind })) },
          ]),
        ]),
      () => undefined,
    );
  }, []);
  const entries = useMemo(() => {
    const asked = text.trim();
    if (UUID.test(asked)) return [{ name: asked, note: "Job", run: () => go(href(["jobs", asked])) }];
    const words = asked.toLowerCase().split(/\s+/);
    const fitting = [...FIXED, ...found].filter(({ name, note }) => {
      const whole = `${name} ${note}`.toLowerCase();
      return words.every((word) => whole.includes(word));
    });
    const search = {
      name: `Jobs with the error “${asked}”`,
      note: "Search",
      run: () => go(href(["jobs"], { q: `error:"${asked}"` })),
    };
    return [...fitting.slice(0, 20), ...(asked === "" ? [] : [search])];
  }, [text, found]);
  const close = () => (isPaletteOpen.value = false);
  const run = (entry: Entry | undefined) => {
    close();
    entry?.run();
  };
  const keyed = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined) {
      event.preventDefault();
      move((before) => (before + step + entries.length) % Math.max(1, entries.length));
    } else if (event.key === "Enter") {
      event.preventDefault();
      run(entries[at]);
    }
  };
  return (
    <Dialog title="Find or do" look="dialog-palette" onClose={close}>
      <input
        ref={input}
        class="input palette-input"
        type="text"
        role="combobox"
        aria-expanded="true"
        aria-controls="palette-list"
        aria-activedescendant={entries.length > 0 ? `palette-${at}` : undefined}
        aria-label="Find or do"
        placeholder="A page, a queue, a kind, a job’s id, part of an error"
        value={text}
        onInput={(event) => {
          write(event.currentTarget.value);
          move(0);
        }}
        onKeyDown={keyed}
      />
      <ul id="palette-list" role="listbox" aria-label="What fits" class="palette-list">
        {entries.map((entry, index) => (
          <li
            key={`${entry.note} ${entry.name}`}
            id={`palette-${index}`}
            role="option"
            aria-selected={index === at}
            class="palette-entry"
            onClick={() => run(entry)}
            onMouseMove={() => move(index)}
          >
            <span>{entry.name}</span>
            <span class="quiet">{entry.note}</span>
          </li>
        ))}
      </ul>
      {entries.length === 0 && <p class="quiet pad">Nothing fits.</p>}
    </Dialog>
  );
}
