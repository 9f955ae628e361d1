// Small drawings, each beside a word that says the same.
const PATHS = {
  overview: "M3 12h4l3-8 4 16 3-8h4",
  queues: "M4 6h16M4 12h16M4 18h10",
  jobs: "M5 4h14v16H5zM9 9h6M9 13h6",
  batches: "M4 8l8-4 8 4-8 4zM4 12l8 4 8-4M4 16l8 4 8-4",
  errors: "M12 3l9 17H3zM12 10v4M12 17.5v.5",
  dead: "M6 6l12 12M18 6L6 18",
  workers: "M4 5h16v6H4zM4 13h16v6H4zM8 8h.01M8 16h.01",
  inbox: "M4 13l3-8h10l3 8v6H4zM4 13h5l1 3h4l1-3h5",
  janitor: "M6 4h12M8 4v5l-3 11h14l-3-11V4",
  actions: "M5 12l5 5L20 7",
  system: "M12 8a4 4 0 100 8 4 4 0 000-8zM12 2v4M12 18v4M2 12h4M18 12h4",
  enqueue: "M12 5v14M5 12h14",
  more: "M5 12h.01M12 12h.01M19 12h.01",
  search: "M11 5a6 6 0 100 12 6 6 0 000-12zM20 20l-4-4",
  clock: "M12 4a8 8 0 100 16 8 8 0 000-16zM12 8v4l3 2",
  play: "M8 5v14l11-7z",
  pause: "M8 5v14M16 5v14",
  retry: "M4 12a8 8 0 0113.7-5.7L20 8M20 4v4h-4M20 12a8 8 0 01-13.7 5.7L4 16M4 20v-4h4",
  done: "M5 12l5 5L20 7",
  stuck: "M12 4a8 8 0 100 16 8 8 0 000-16zM12 8v5M12 16v.01",
  cancelled: "M12 4a8 8 0 100 16 8 8 0 000-16zM6.5 6.5l11 11",
  ready: "M12 8a4 4 0 100 8 4 4 0 000-8z",
  close: "M6 6l12 12M18 6L6 18",
  copy: "M8 8h11v11H8zM5 16V5h11",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 24 24" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} />
    </svg>
  );
}
