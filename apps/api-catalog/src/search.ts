// Finds operations: by meaning (nearest vectors), by words (the database's full text), or by both. One search compares
// vectors of one model only: those of this process. What is not embedded yet, or embedded with another model, is found by
// words, and the answer says which specs these are.
import type { Holdfast } from "holdfast";
import type { Model } from "./model.ts";
import { similarity, toVector } from "./vectors.ts";

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
}

export interface SearchInput {
  catalog: string;
  text: string;
  by: SearchBy;
  limit: number;
}

interface Place {
  spec: string;
  operation: string;
  score: number;
  isStale: boolean;
}

const PAGE = 1_000;
const WIDTH = 200;
/** Of reciprocal rank fusion: how little the first places differ. */
const EVEN = 60;
const QUERY_MS = 10_000;

export async function search(hf: Holdfast, model: Model | undefined, input: SearchInput): Promise<Found> {
  const { catalog, text, by, limit } = input;
  const meaning = by === "words" ? { places: [], trouble: null } : await byMeaning(hf, model, catalog, text);
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
  return { hits, trouble: meaning.trouble };
}

const nameOf = ({ spec, operation }: { spec: string; operation: string }): string => `${spec} ${operation}`;

async function byMeaning(
  hf: Holdfast,
  model: Model | undefined,
  catalog: string,
  text: string,
): Promise<{ places: Place[]; trouble: string | null }> {
  if (!model) return { places: [], trouble: "No embedder is set." };
  let asked;
  try {
    asked = await model.embedQuery(text, AbortSignal.timeout(QUERY_MS));
  } catch (error) {
    return { places: [], trouble: error instanceof Error ? error.message : String(error) };
  }
  const wanted = asked.vectors[0]!;
  const places: Place[] = [];
  let after: [string, string] = ["00000000-0000-0000-0000-000000000000", ""];
  for (;;) {
    const { rows } = await hf.sql.query<{ spec: string; operation: string; vector: Uint8Array; isStale: boolean }>(
      `select v.spec_id as spec, v.operation, v.vector, (v.hash <> o.hash) as "isStale"
       from :schema.catalog_vectors v
       join :schema.catalog_specs s on s.id = v.spec_id and s.model = v.model
       join :schema.catalog_operations o on o.spec_id = v.spec_id and o.operation = v.operation
       where s.catalog_id = $1 and v.model = $2 and (v.spec_id, v.operation) > ($3::uuid, $4)
       order by v.spec_id, v.operation limit ${PAGE}`,
      [catalog, asked.label, ...after],
    );
    for (const { spec, operation, vector, isStale } of rows) {
      places.push({ spec, operation, isStale, score: similarity(wanted, toVector(vector)) });
    }
    const last = rows.at(-1);
    if (!last || rows.length < PAGE) break;
    after = [last.spec, last.operation];
  }
  places.sort((a, b) => b.score - a.score);
  return { places: places.filter(({ score }) => score > 0).slice(0, WIDTH), trouble: null };
}

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
