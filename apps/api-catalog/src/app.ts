// The app: documents in, operations that can be found out. `apiCatalog()` takes options, or nothing.
import { type App, type AppStart, defineApp, durationMs, type Holdfast, migrationsFrom } from "holdfast";
import { makeCommands } from "./commands.ts";
import { type EmbedKind, makeEmbedKind } from "./embed-kind.ts";
import { makeEmbedder } from "./embedders/options.ts";
import { makeModel, type Model } from "./model.ts";
import { APP } from "./names.ts";
import { type CatalogOptions, type Environment, readOptions, type ResolvedOptions } from "./options.ts";
import { makeNearChore } from "./pgvector/chore.ts";
import { makeReconcileChore } from "./reconcile.ts";
import { makeRoutes } from "./routes/routes.ts";
import { makeSpecs, type Specs } from "./specs.ts";

/** What belongs to one Holdfast. */
export interface Desk {
  hf: Holdfast;
  options: ResolvedOptions;
  specs: Specs;
  /** undefined: no embedder is set, and nothing is embedded. */
  model: Model | undefined;
  kind: EmbedKind | undefined;
}

export function apiCatalog(given: CatalogOptions = {}, env: Environment = process.env): App {
  const options = readOptions(given, env);
  const embedder = makeEmbedder(options.embedder);
  const desks = new WeakMap<Holdfast, Desk>();
  const makeDesk = (hf: Holdfast): Desk => {
    const { batchSize, embedTimeout, pgvector } = options;
    const model = embedder && makeModel(embedder, durationMs("embedTimeout", embedTimeout));
    const kind = model && makeEmbedKind(options, { hf, model, batchSize, embedTimeout, pgvector });
    return { hf, options, model, kind, specs: makeSpecs(hf, kind) };
  };
  const deskOf = (hf: Holdfast): Desk => {
    const desk = desks.get(hf) ?? makeDesk(hf);
    desks.set(hf, desk);
    return desk;
  };
  return defineApp({
    name: APP,
    migrations: migrationsFrom(new URL("../migrations/", import.meta.url)),
    jobs: (hf) => {
      const { kind } = deskOf(hf);
      return kind ? [kind] : [];
    },
    chores: (hf) => {
      const { specs, model } = deskOf(hf);
      const { reconcileEvery: every, parkFor, pgvector: use } = options;
      if (!model) return [];
      const reconcile = makeReconcileChore({ hf, specs, model, every, parkFor });
      return use === "off" ? [reconcile] : [reconcile, makeNearChore({ hf, model, use, every })];
    },
    routes: makeRoutes(deskOf, options.maxDocumentBytes),
    commands: makeCommands(),
    page: { title: "API catalog", folder: new URL("../page/", import.meta.url) },
    start: ({ log }: AppStart) => {
      const { batchSize, leaseDuration, embedTimeout, workers } = options;
      if (!embedder) log.warn("The API catalog has no embedder: it is searched by words only");
      else
        log.info("The API catalog is ready", {
          embedder: embedder.name,
          batchSize,
          leaseDuration,
          embedTimeout,
          workers,
        });
    },
  });
}
