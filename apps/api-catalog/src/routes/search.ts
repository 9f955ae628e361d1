import type { AppRoute } from "holdfast";
import { Refused } from "../refused.ts";
import { search, type SearchBy } from "../search.ts";
import { readStatus } from "../status.ts";
import { type DeskOf, findCatalog, makeRoute } from "./route.ts";

const LONGEST = 1_000;

export function makeSearchRoutes(deskOf: DeskOf): AppRoute[] {
  return [
    makeRoute(deskOf, {
      method: "GET",
      path: "/:catalog/search",
      async answer(asked) {
        const { hf, specs, model, request } = asked;
        const { id: catalog } = await findCatalog(asked);
        const text = (request.query.get("q") ?? "").replaceAll("\0", "").trim().slice(0, LONGEST);
        if (text === "") throw new Refused(422, "QUERY_EMPTY", "The question is empty.", "Give ?q=…");
        const by = readBy(request.query.get("by") ?? "both");
        const limit = Math.min(Math.max(Number(request.query.get("limit") ?? 20) || 20, 1), 100);
        const { pgvector } = asked.options;
        const { hits, trouble, nearest } = await search(hf, model, { catalog, text, by, limit, pgvector });
        const status = await readStatus(hf, specs, catalog, model?.known);
        const unfinished = status.specs.filter(({ state }) => state !== "indexed" && state !== "empty");
        return {
          query: text,
          by,
          hits,
          trouble,
          nearest,
          isComplete: unfinished.length === 0,
          unfinished: unfinished.map(({ name, badge, embedded, operations }) => ({
            name,
            badge,
            embedded,
            operations,
          })),
        };
      },
    }),
  ];
}

function readBy(given: string): SearchBy {
  if (given === "meaning" || given === "words" || given === "both") return given;
  throw new Refused(422, "BY_INVALID", `by is ${JSON.stringify(given)}.`, "Give meaning, words or both.");
}
