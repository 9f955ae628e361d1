// Everything that the page, the command line and other programs ask for.
import type { AppRoute } from "holdfast";
import { makeCatalogRoutes } from "./catalogs.ts";
import { makeEmbeddingRoutes } from "./embedding.ts";
import type { DeskOf } from "./route.ts";
import { makeSearchRoutes } from "./search.ts";
import { makeSpecRoutes } from "./specs.ts";

export function makeRoutes(deskOf: DeskOf, maxDocumentBytes: number): AppRoute[] {
  return [
    ...makeCatalogRoutes(deskOf),
    ...makeSpecRoutes(deskOf, maxDocumentBytes),
    ...makeEmbeddingRoutes(deskOf),
    ...makeSearchRoutes(deskOf),
  ];
}
