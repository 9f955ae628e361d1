// Finds operations: by meaning (nearest vectors), by words (the database's full text), or by both. One search compares
// vectors of one model only: those of this process. What is not embedded yet, or embedded with another model, is found by
// words, and the answer says which specs these are.
import type { Holdfast } from "holdfast";
import { byMeaning, type Place, WIDTH } from "./meaning.ts";
import type { Model } from "./model.ts";
import type { PgvectorUse } from "./pgvector/chore.ts";

export type SearchBy = "meaning" | "words" | "both";

export interface Hit {
  spec: string;
  method: string;
  path: string;
  operationId: string | null;
  summary: string;
  tags: string[];
  score: number;
  by: ("meaning" | "words")[];
  /** Its text was changed, and its vector is of the text before. */
  isStale: boolean;
}

export interface Found {
  hits: Hit[];
  /** Why there is nothing by meaning. */
  trouble: string | null;
  /** How the nearest vectors were found; null: not asked for. */
  nearest: "pgvector" | "exact" | null;
}

export interface SearchInput {
  catalog: string;
  text: string;
  by: SearchBy;
  limit: number;
  pgvector?: PgvectorUse;
}

/** Of reciprocal rank fusion: how little the first places differ. */
const EVEN = 60;

export async function search(hf: Holdfast, model: Model | undefined, input: SearchInput): Promise<Found> {
  const { catalog, text, by, limit } = input;
  const meaning =
    by === "words"
      ? { places: [], trouble: null, nearest: null }
      : await byMeaning(hf, model, { catalog, text, mayUsePgvector: input.pgvector !== "off" });
  const words = by === "meaning" ? [] : await byWords(hf, catalog, text);
  const merged = by === "both" ? fuse(meaning.places, words) : by === "words" ? words : meaning.places;
  const best = merged.slice(0, limit);
  const has = (list: readonly Place[]): Set<string> => new Set(list.map(nameOf));
  const [inMeaning, inWords] = [has(meaning.places.slice(0, WIDTH)), has(words)];
  const details = await readDetails(hf, best);
  const hits = best.flatMap((place): Hit[] => {
    const detail = details.get(nameOf(place));
    if (!detail) return [];
    const found: Hit["by"] = [];
    if (inMeaning.has(nameOf(place))) found.push("meaning");
    if (inWords.has(nameOf(place))) found.push("words");
    return [{ ...detail, score: Math.round(place.score * 10_000) / 10_000, by: found, isStale: place.isStale }];
  });
  return { hits, trouble: meaning.trouble, nearest: meaning.nearest };
}

const nameOf = ({ spec, operation }: { spec: string; operation: string }): string => `${spec} ${operation}`;

/** Any of the words; more of them, in better places, are better. */
async function byWords(hf: Holdfast, catalog: string, text: string): Promise<Place[]> {
  const { rows } = await hf.sql.query<Place>(
    `select o.spec_id as spec, o.operation, ts_rank_cd(o.words, q.query)::float8 as score, false as "isStale"
     from (select replace(plainto_tsquery('english', $2)::text, ' & ', ' | ')::tsquery as query) q,
       :schema.catalog_operations o join :schema.catalog_specs s on s.id = o.spec_id
     where s.catalog_id = $1 and o.words @@ q.query
     order by score desc, o.spec_id, o.operation limit ${WIDTH}`,
    [catalog, text],
  );
  return rows;
}

/** By places and not by scores, which are not of one measure. */
function fuse(...lists: Place[][]): Place[] {
  const fused = new Map<string, Place>();
  for (const list of lists) {
    for (const [rank, place] of list.entries()) {
      const before = fused.get(nameOf(place));
      const score = (before?.score ?? 0) + 1 / (EVEN + rank + 1);
      fused.set(nameOf(place), { ...place, isStale: place.isStale || (before?.isStale ?? false), score });
    }
  }
  return [...fused.values()].sort((a, b) => b.score - a.score);
}

type Detail = Omit<Hit, "score" | "by" | "isStale">;

async function readDetails(hf: Holdfast, places: readonly Place[]): Promise<Map<string, Detail>> {
  const wanted = places.map(({ spec, operation }) => ({ spec, operation }));
  const { rows } = await hf.sql.query<Detail & { id: string; operation: string }>(
    `select s.id, o.operation, s.name as spec, o.method, o.path, o.operation_id as "operationId", o.summary, o.tags
     from jsonb_to_recordset($1::jsonb) as w (spec uuid, operation text)
     join :schema.catalog_operations o on o.spec_id = w.spec and o.operation = w.operation
     join :schema.catalog_specs s on s.id = o.spec_id`,
    [JSON.stringify(wanted)],
  );
  return new Map(rows.map(({ id, operation, ...detail }) => [nameOf({ spec: id, operation }), detail]));
}
