// The app: links in, articles out. `articleImport()` takes options, or nothing.
import { type App, type AppStart, defineApp, durationMs, type Holdfast, type Logger, migrationsFrom } from "holdfast";
import { type Extractor, makeExtractor } from "./extract/extractor.ts";
import { makeFetchPage } from "./fetching/fetch-page.ts";
import { makePoliteness } from "./fetching/politeness.ts";
import { makeRobots } from "./fetching/robots.ts";
import { makeTidyChore } from "./tidy.ts";
import { type ImportKind, makeImportKind } from "./import-kind.ts";
import { APP } from "./kind-name.ts";
import { type Library, makeLibrary } from "./library.ts";
import { type Environment, type ImportOptions, longestRunMs, readOptions, type ResolvedOptions } from "./options.ts";
import { makeRoutes } from "./routes/routes.ts";
import { SampleSite } from "./sample/sample-site.ts";
import { makeTally, type Tally } from "./tally.ts";

/** What belongs to one Holdfast. */
export interface Desk {
  hf: Holdfast;
  options: ResolvedOptions;
  kind: ImportKind;
  library: Library;
  extractor: Extractor;
  tally: Tally;
  /** The one of `holdfast dev`. */
  sample: SampleSite | undefined;
}

export function articleImport(given: ImportOptions = {}, env: Environment = process.env): App {
  const options = readOptions(given, env);
  const desks = new WeakMap<Holdfast, Desk>();
  const deskOf = (hf: Holdfast): Desk => {
    const known = desks.get(hf);
    if (known) return known;
    const made = makeDesk(hf, options);
    desks.set(hf, made);
    return made;
  };
  return defineApp({
    name: APP,
    migrations: migrationsFrom(new URL("../migrations/", import.meta.url)),
    // Without its kind this process claims nothing of it; imports are taken all the same.
    jobs: (hf) => (options.workerDisabled ? [] : [deskOf(hf).kind]),
    chores: (hf) => [makeTidyChore(hf)],
    routes: makeRoutes(deskOf),
    page: { title: "Article import", folder: new URL("../page/", import.meta.url) },
    start: (context) => start(deskOf(context.hf), context),
  });
}

function makeDesk(hf: Holdfast, options: ResolvedOptions): Desk {
  const library = makeLibrary(hf);
  const tally = makeTally();
  const { threads, readMemoryMb: memoryMb, userAgent } = options;
  const extractor = makeExtractor({ threads, memoryMb, timeoutMs: durationMs("readTimeout", options.readTimeout) });
  const fetchPage = makeFetchPage({
    timeout: options.fetchTimeout,
    maxPageBytes: options.maxPageBytes,
    userAgent,
    allowOrigins: () => [...options.allowOrigins, ...(desk.sample ? [desk.sample.url] : [])],
  });
  const politeness = makePoliteness(hf, {
    perHost: options.perHost,
    delayMs: durationMs("hostDelay", options.hostDelay),
    longestVisitMs: longestRunMs(options),
  });
  const robots = options.robots === "obey" ? makeRobots(hf, fetchPage, userAgent) : undefined;
  const tools = { hf, library, politeness, robots, fetchPage, extractor, tally };
  const desk: Desk = {
    hf,
    options,
    library,
    extractor,
    tally,
    sample: undefined,
    kind: makeImportKind(options, tools),
  };
  return desk;
}

async function start(desk: Desk, { hf, mode, log }: AppStart): Promise<() => Promise<void>> {
  const { options, tally } = desk;
  say(options, log);
  const stops = [tally.listen(hf), hf.metrics.add(() => tally.text())];
  if (mode === "dev") desk.sample = await SampleSite.start();
  return async () => {
    for (const stop of stops) stop();
    await desk.sample?.close();
    await desk.extractor.close();
  };
}

function say(
  { workerDisabled, concurrency, attempts, fetchTimeout, perHost, hostDelay, robots }: ResolvedOptions,
  log: Logger,
): void {
  if (workerDisabled) {
    log.info("The article importer runs no items here (ARTICLES_IMPORT_WORKER_DISABLED)");
    return;
  }
  log.info("The article importer is ready", { concurrency, attempts, fetchTimeout, perHost, hostDelay });
  if (robots === "ignore") log.warn("The article importer ignores robots.txt, because it was told to");
}
