import type { AppRoute } from "holdfast";
import { Refused } from "../refused.ts";
import { readStatus } from "../status.ts";
import { bodyOf, checkCatalogId, checkName, type DeskOf, findCatalog, makeRoute } from "./route.ts";

export function makeCatalogRoutes(deskOf: DeskOf): AppRoute[] {
  return [
    makeRoute(deskOf, {
      method: "GET",
      path: "",
      answer: async ({ specs, options }) => ({
        catalogs: await specs.catalogs(),
        embedder: options.embedder.provider,
      }),
    }),
    makeRoute(deskOf, {
      method: "POST",
      path: "",
      async answer(asked) {
        const { id, name } = await bodyOf(asked);
        const catalog = { id: checkCatalogId(id), name: checkName("catalog", name ?? id) };
        if (await asked.specs.makeCatalog(catalog.id, catalog.name)) return Response.json(catalog, { status: 201 });
        throw new Refused(409, "EXISTS", `There is a catalog ${catalog.id} already.`, "Use it, or choose another id.");
      },
    }),
    makeRoute(deskOf, {
      method: "GET",
      path: "/:catalog",
      async answer(asked) {
        const catalog = await findCatalog(asked);
        return { ...catalog, ...(await readStatus(asked.hf, asked.specs, catalog.id, asked.model?.known)) };
      },
    }),
    makeRoute(deskOf, {
      method: "PATCH",
      path: "/:catalog",
      async answer(asked) {
        const { id } = await findCatalog(asked);
        const name = checkName("catalog", (await bodyOf(asked))["name"]);
        await asked.specs.renameCatalog(id, name);
        return { id, name };
      },
    }),
    makeRoute(deskOf, {
      method: "DELETE",
      path: "/:catalog",
      async answer(asked) {
        const { id } = await findCatalog(asked);
        return { deleted: await asked.specs.removeCatalog(id) };
      },
    }),
  ];
}
