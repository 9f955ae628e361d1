// Every screen: where it is, what it is called, how it is reached by keys.
import type { IconName } from "./ui/icon.tsx";

export interface ScreenInfo {
  path: string;
  title: string;
  icon: IconName;
  /** g and this letter. */
  key: string;
}

export const SCREENS: readonly ScreenInfo[] = [
  { path: "", title: "Overview", icon: "overview", key: "o" },
  { path: "queues", title: "Queues", icon: "queues", key: "q" },
  { path: "jobs", title: "Jobs", icon: "jobs", key: "j" },
  { path: "batches", title: "Batches", icon: "batches", key: "b" },
  { path: "errors", title: "Errors", icon: "errors", key: "e" },
  { path: "dead", title: "Dead", icon: "dead", key: "d" },
  { path: "workers", title: "Workers", icon: "workers", key: "w" },
  { path: "inbox", title: "Inbox", icon: "inbox", key: "i" },
  { path: "actions", title: "Actions", icon: "actions", key: "a" },
  { path: "janitor", title: "Janitor", icon: "janitor", key: "k" },
  { path: "enqueue", title: "Enqueue", icon: "enqueue", key: "n" },
  { path: "system", title: "System", icon: "system", key: "s" },
];
