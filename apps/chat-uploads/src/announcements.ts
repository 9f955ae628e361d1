// Who waits in this process for news of a workspace is told at once; made after a commit, never before. Others look by
// themselves every two seconds.

export interface Announcement {
  workspaceId: string;
  what: "files" | "message";
  /** The files' ids, or the message's. */
  ids: readonly string[];
}

export interface Announcements {
  announce(announcement: Announcement): void;
  /** Resolves with the next one about this workspace, after `ms`, or when everything ends. */
  next(workspaceId: string, ms: number, signal: AbortSignal): { heard: Promise<void>; cancel(): void };
  readonly isClosed: boolean;
  close(): void;
}

export interface AnnouncementsOptions {
  onAnnounced: (announcement: Announcement) => void;
  /** What it announces has happened, whatever becomes of the telling. */
  onFault: (error: unknown) => void;
}

export function makeAnnouncements({ onAnnounced, onFault }: AnnouncementsOptions): Announcements {
  const waiting = new Map<string, Set<() => void>>();
  let isClosed = false;
  const wake = (hearers: Iterable<() => void>): void => {
    for (const hear of hearers) hear();
  };
  return {
    get isClosed() {
      return isClosed;
    },
    announce(announcement) {
      wake(waiting.get(announcement.workspaceId) ?? []);
      // One that is async rejects instead of throwing.
      new Promise<void>((resolve) => resolve(onAnnounced(announcement))).catch(onFault);
    },
    next(workspaceId, ms, signal) {
      let settle: () => void = () => {};
      const heard = new Promise<void>((resolve) => (settle = resolve));
      const hearers = waiting.get(workspaceId) ?? new Set();
      waiting.set(workspaceId, hearers);
      const cancel = (): void => {
        clearTimeout(timer);
        signal.removeEventListener("abort", cancel);
        hearers.delete(cancel);
        if (hearers.size === 0 && waiting.get(workspaceId) === hearers) waiting.delete(workspaceId);
        settle();
      };
      const timer = setTimeout(cancel, ms);
      hearers.add(cancel);
      signal.addEventListener("abort", cancel);
      if (signal.aborted || isClosed) cancel();
      return { heard, cancel };
    },
    close() {
      isClosed = true;
      wake([...waiting.values()].flatMap((hearers) => [...hearers]));
    },
  };
}
