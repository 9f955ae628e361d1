// Tells when one of some files changes, comes or goes. Folders are watched, not files: editors replace files, and one that
// is not there yet may come. Several changes within a moment are one.
import { type FSWatcher, watch } from "node:fs";
import { basename, dirname } from "node:path";

export interface FileWatch {
  /** From now on these. `orAny`: also any other source in their folders, such as one that was looked for in vain. */
  follow(files: readonly string[], options?: { orAny?: boolean }): void;
  close(): void;
}

/** An editor writes in steps, and a checkout many files. */
const CALM_MS = 100;
const SOURCE = /\.(m|c)?[jt]sx?$|\.json$/;

export function watchFiles(onChange: () => void): FileWatch {
  const folders = new Map<string, FSWatcher>();
  let names = new Map<string, Set<string>>();
  let isAny = false;
  let timer: NodeJS.Timeout | undefined;

  function happened(folder: string, name: string | null): void {
    const isFollowed = name === null || names.get(folder)?.has(name) || (isAny && SOURCE.test(name));
    if (!isFollowed) return;
    clearTimeout(timer);
    timer = setTimeout(onChange, CALM_MS);
  }

  function look(folder: string): void {
    try {
      const watcher = watch(folder, { persistent: false }, (_, name) => happened(folder, name));
      watcher.on("error", () => folders.delete(folder));
      folders.set(folder, watcher);
    } catch {
      // The folder is gone, or cannot be watched: nothing is told of it.
    }
  }

  return {
    follow(files, { orAny = false } = {}) {
      isAny = orAny;
      names = new Map();
      for (const file of files) {
        const folder = dirname(file);
        names.set(folder, (names.get(folder) ?? new Set()).add(basename(file)));
      }
      for (const [folder, watcher] of folders) {
        if (names.has(folder)) continue;
        watcher.close();
        folders.delete(folder);
      }
      for (const folder of names.keys()) if (!folders.has(folder)) look(folder);
    },
    close() {
      clearTimeout(timer);
      for (const watcher of folders.values()) watcher.close();
      folders.clear();
    },
  };
}
