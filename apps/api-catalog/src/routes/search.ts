import type { AppRoute } from "holdfast";
import { Refused } from "../refused.ts";
import { search, type SearchBy } from "../search.ts";
import { type BadgeState, readStatus, type SpecStatus } from "../status.ts";
import { type DeskOf, findCatalog, makeRoute, readLimit } from "./route.ts";

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
        const limit = readLimit(request.query.get("limit"), 20, 100);
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
          notes: notesOf(by, trouble, unfinished),
          isComplete: unfinished.length === 0,
          unfinished: unfinished.map(({ name, state, badge, embedded, operations }) => ({
            name,
            state,
            badge,
            embedded,
            operations,
          })),
        };
      },
    }),
  ];
}

/** What whoever asked must know about the answer, in sentences. Words are found as soon as a document is there. */
function notesOf(by: SearchBy, trouble: string | null, unfinished: readonly SpecStatus[]): string[] {
  if (by === "words") return [];
  const notes: string[] = [];
  if (unfinished.some(({ state }) => UNDER_WAY.has(state))) {
    notes.push("Indexing is still going on: there may be more by meaning.");
  } else if (unfinished.length > 0 && trouble === null) {
    notes.push("Not all specs are indexed: there may be more by meaning.");
  }
  if (trouble !== null) notes.push(`${by === "meaning" ? "Not searched by meaning" : "By words only"}: ${trouble}`);
  return notes;
}

const UNDER_WAY: ReadonlySet<BadgeState> = new Set(["indexing", "queued", "retrying"]);

function readBy(given: string): SearchBy {
  if (given === "meaning" || given === "words" || given === "both") return given;
  throw new Refused(422, "BY_INVALID", `by is ${JSON.stringify(given)}.`, "Give meaning, words or both.");
}
