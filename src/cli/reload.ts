// Hot reload for `holdfast dev`: when the configuration file, or a file that it imports, changes, it is read anew and
// handed on. One that cannot be loaded changes nothing: what ran goes on, and the log says what is wrong.
import type { ConfigLoader } from "./config-file.ts";
import { explain } from "./exit-codes.ts";
import type { Log } from "./log.ts";
import type { Settings } from "./settings.ts";
import { shownSettings } from "./shown-settings.ts";
import { watchFiles } from "./watch-files.ts";

export interface ReloadInput {
  loader: ConfigLoader;
  /** What the process started with. */
  settings: Settings;
  /** Reads the file and resolves all settings again. */
  read(): Promise<Settings>;
  /** Makes the process run with these. What it throws is told, and the process goes on as before. */
  apply(settings: Settings): Promise<void>;
  log: Log;
}

export interface Reload {
  /** Resolves when a reload that is under way has ended. */
  stop(): Promise<void>;
}

/** What a running process takes over; everything else wants a restart. */
const TAKEN_OVER: readonly (keyof Settings)[] = ["jobs", "apps", "concurrency"];

export function reloadOnChange({ loader, settings, read, apply, log }: ReloadInput): Reload {
  let working = Promise.resolve();
  let isStopped = false;
  const watch = watchFiles(() => {
    working = working.then(reload);
  });

  async function reload(): Promise<void> {
    if (isStopped) return;
    try {
      const next = await read();
      watch.follow(loader.files());
      await apply(next);
      for (const name of needRestart(settings, next)) {
        log.warn(`${name} is another in the configuration now: that takes effect at the next start.`);
      }
    } catch (error) {
      watch.follow(loader.files(), { orAny: true });
      const { message, hint } = explain(error);
      log.error(`The change was not taken over: ${message}`, { hint, goesOn: "with what was loaded before" });
    }
  }

  watch.follow(loader.files());
  return {
    async stop() {
      isStopped = true;
      watch.close();
      await working;
    },
  };
}

function needRestart(before: Settings, after: Settings): string[] {
  const [was, is] = [shownSettings(before), shownSettings(after)];
  return (Object.keys(was) as (keyof Settings)[]).filter(
    (name) => !TAKEN_OVER.includes(name) && JSON.stringify(was[name].value) !== JSON.stringify(is[name].value),
  );
}
