// Apps in a running process. First their tables are brought up to date, and their kinds and chores are there; when the
// process is ready they are started, and stopped in reverse.
import type { Holdfast } from "../client/client.ts";
import { OptionInvalid } from "../errors.ts";
import type { AnyJobKind } from "../job/define-job.ts";
import { type Logger, SILENT } from "../options.ts";
import type { App, AppStart } from "./define-app.ts";

/**
 * Brings the apps' tables up to date, adds their chores, and returns their kinds, for `hf.work()` and `makeHandler()`.
 * `others`: kinds that are there besides; no app may have one of the same name. `replaceChores`: this is not the first
 * time, and chores that are there are to be run as they are written now.
 */
export async function prepareApps(
  hf: Holdfast,
  apps: readonly App[],
  others: readonly AnyJobKind[] = [],
  { replaceChores = false }: { replaceChores?: boolean } = {},
): Promise<AnyJobKind[]> {
  const twice = apps.find((app, index) => apps.findIndex(({ name }) => name === app.name) !== index);
  if (twice) throw new OptionInvalid(`There are two apps named "${twice.name}".`, "List each app once.");
  const owners = new Map(others.map((kind) => [kind.kind, "the configuration"]));
  const kinds: AnyJobKind[] = [];
  for (const app of apps) {
    if (app.migrations) await hf.sql.migrate(app.name, app.migrations);
    for (const kind of typeof app.jobs === "function" ? app.jobs(hf) : (app.jobs ?? [])) {
      const owner = owners.get(kind.kind);
      if (owner !== undefined) {
        throw new OptionInvalid(
          `The kind "${kind.kind}" is defined by ${owner} and by the app "${app.name}".`,
          "Give each kind a name of its own.",
        );
      }
      owners.set(kind.kind, `the app "${app.name}"`);
      kinds.push(kind);
    }
    for (const chore of typeof app.chores === "function" ? app.chores(hf) : (app.chores ?? [])) {
      const isThere = replaceChores && hf.janitor.chores.some(({ name }) => name === chore.name);
      if (isThere) hf.janitor.replace(chore);
      else hf.janitor.add(chore);
    }
  }
  return kinds;
}

/** What `startApps` tells the apps about their process. */
export interface StartAppsOptions {
  mode?: AppStart["mode"];
  /** Where the server of this process answers. */
  url?: string | undefined;
  log?: Logger;
}

/** Calls `start` of each, when everything else is ready. Returns what stops them. */
export async function startApps(
  hf: Holdfast,
  apps: readonly App[],
  { mode = "program", url, log = SILENT }: StartAppsOptions = {},
): Promise<() => Promise<void>> {
  const stops: (() => unknown)[] = [];
  const stop = async (): Promise<void> => {
    for (const stopApp of stops.splice(0).toReversed()) await stopApp();
  };
  try {
    for (const app of apps) {
      const stopApp: unknown = await app.start?.({ hf, mode, url, log });
      if (typeof stopApp === "function") stops.push(() => stopApp() as unknown);
    }
  } catch (error) {
    await stop();
    throw error;
  }
  return stop;
}
