// Where one can go: at the side, or at the bottom of a narrow screen. A badge shows only what needs a person.
import { useState } from "preact/hooks";
import { call } from "../api/call.ts";
import { useData } from "../api/use-data.ts";
import { count } from "../format.ts";
import { place } from "../router.ts";
import { SCREENS, type ScreenInfo } from "../screens.ts";
import { Dialog } from "../ui/dialog.tsx";
import { Icon } from "../ui/icon.tsx";

const ON_THE_BAR = ["", "jobs", "queues", "dead"];

export function Nav() {
  const [isOpen, open] = useState(false);
  const figures = useData("nav", async (signal) => {
    const [{ queues }, { workers }] = await Promise.all([
      call("listQueues", { signal }),
      call("listWorkers", { signal }),
    ]);
    return {
      dead: queues.reduce((sum, queue) => sum + queue.dead, 0),
      ready: queues.reduce((sum, queue) => sum + queue.ready, 0),
      workers: workers.filter(({ silentMs }) => silentMs < 60_000).length,
    };
  }).value;
  const mark = ({ path }: ScreenInfo) => {
    if (!figures) return null;
    if (path === "dead" && figures.dead > 0) return <span class="mark mark-bad">{count(figures.dead)}</span>;
    if (path === "workers" && figures.workers === 0 && figures.ready > 0) return <span class="mark mark-bad">0</span>;
    return null;
  };
  const here = place.value.path[0] ?? "";
  const link = (screen: ScreenInfo) => (
    <a
      key={screen.path}
      href={`#/${screen.path}`}
      class="nav-link"
      aria-current={here === screen.path ? "page" : undefined}
      onClick={() => open(false)}
    >
      <Icon name={screen.icon} />
      <span>{screen.title}</span>
      {mark(screen)}
    </a>
  );
  const onBar = SCREENS.filter(({ path }) => ON_THE_BAR.includes(path));
  return (
    <nav class="nav" aria-label="Main">
      <a class="brand" href="#/">
        <svg viewBox="0 0 32 32" aria-hidden="true">
          <rect width="32" height="32" rx="7" />
          <path d="M10 7v18M22 7v18M10 16h12" />
        </svg>
        Holdfast
      </a>
      <div class="nav-side">{SCREENS.map(link)}</div>
      <div class="nav-bar">
        {onBar.map(link)}
        <button type="button" class="nav-link" aria-expanded={isOpen} onClick={() => open(true)}>
          <Icon name="more" />
          <span>More</span>
        </button>
      </div>
      {isOpen && (
        <Dialog title="All pages" look="dialog-sheet" onClose={() => open(false)}>
          <div class="nav-sheet">{SCREENS.map(link)}</div>
        </Dialog>
      )}
    </nav>
  );
}
