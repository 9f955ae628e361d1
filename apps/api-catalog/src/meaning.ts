// The operations whose vectors are nearest to a question, best first. Few are compared one by one in the process; many are
// found by pgvector where the database has it. Whatever happens to pgvector, the comparison of all is there, and right.
import type { Holdfast, SqlTransaction } from "holdfast";
import { EmbedderWrong, tooSlow } from "./embedders/embedder.ts";
import type { Model } from "./model.ts";
import { findPgvector, vectorModelOf } from "./pgvector/detect.ts";
import { readNearest } from "./pgvector/nearest.ts";
import { similarity, toVector } from "./vectors.ts";

export interface Place {
  spec: string;
  operation: string;
  score: number;
  isStale: boolean;
}

export interface Meaning {
  places: Place[];
  trouble: string | null;
  nearest: "pgvector" | "exact" | null;
}

export interface MeaningInput {
  catalog: string;
  text: string;
  mayUsePgvector: boolean;
}

interface Scope {
  label: string;
  wanted: Float32Array;
  /** Those that are searched with this model. */
  specs: string[];
  operations: number;
}

/** So many are enough for any answer. */
export const WIDTH = 200;
/** One page: no index is faster. */
const EXACT_UP_TO = 1_000;
const PAGE = 1_000;
const QUERY_MS = 10_000;

export async function byMeaning(hf: Holdfast, model: Model | undefined, input: MeaningInput): Promise<Meaning> {
  if (!model) return { places: [], trouble: "No embedder is set.", nearest: null };
  let asked;
  // By a timer of our own: Node 20 forgets a timeout that only any() knows of.
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(tooSlow(QUERY_MS)), QUERY_MS);
  try {
    asked = await model.embedQuery(input.text, late.signal);
  } catch (error) {
    return { places: [], trouble: troubleOf(error), nearest: null };
  } finally {
    clearTimeout(timer);
  }
  const scope = await readScope(hf.sql, input.catalog, asked.label, asked.vectors[0]!);
  const isLarge = scope.operations > EXACT_UP_TO;
  const near = isLarge && input.mayUsePgvector ? await byPgvector(hf, scope) : undefined;
  const places = near ?? (await compare(hf.sql, scope, ""));
  return { places: best(places), trouble: null, nearest: near ? "pgvector" : "exact" };
}

function troubleOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  // Words that are too common, or no words at all.
  return error instanceof EmbedderWrong ? `The question has no vector: ${error.message}` : error.message;
}

async function readScope(sql: SqlTransaction, catalog: string, label: string, wanted: Float32Array): Promise<Scope> {
  const { rows } = await sql.query<{ id: string; operations: number }>(
    "select id, operation_count as operations from :schema.catalog_specs where catalog_id = $1 and model = $2",
    [catalog, label],
  );
  const operations = rows.reduce((sum, each) => sum + each.operations, 0);
  return { label, wanted, specs: rows.map(({ id }) => id), operations };
}

/** undefined: without pgvector, then. It may be dropped or changed in the middle of this; nobody is to see an error for that. */
async function byPgvector(hf: Holdfast, scope: Scope): Promise<Place[] | undefined> {
  const model = vectorModelOf(scope.label);
  try {
    return await hf.sql.transaction(async (tx) => {
      // What is filled in meanwhile is found once, and not twice or never.
      await tx.query("set transaction isolation level repeatable read");
      const pgvector = await findPgvector(tx, model);
      if (!pgvector?.hasColumn) return undefined;
      const rest = await compare(tx, scope, "and v.near is null");
      const { specs, wanted } = scope;
      const most = scope.operations - rest.length;
      const near = await readNearest(tx, pgvector, { model, specs, wanted, limit: WIDTH, most });
      return [...rest, ...near.flatMap((each) => (each.isStale === null ? [] : [{ ...each, isStale: each.isStale }]))];
    });
  } catch {
    return undefined;
  }
}

/** One by one, in the process. */
async function compare(sql: SqlTransaction, scope: Scope, which: "" | "and v.near is null"): Promise<Place[]> {
  const places: Place[] = [];
  let after: [string, string] = ["00000000-0000-0000-0000-000000000000", ""];
  for (;;) {
    const { rows } = await sql.query<{ spec: string; operation: string; vector: Uint8Array; isStale: boolean }>(
      `select v.spec_id as spec, v.operation, v.vector, (v.hash <> o.hash) as "isStale"
       from :schema.catalog_vectors v
       join :schema.catalog_operations o on o.spec_id = v.spec_id and o.operation = v.operation
       where v.spec_id = any (array(select jsonb_array_elements_text($1::jsonb)::uuid)) and v.model = $2
         and (v.spec_id, v.operation) > ($3::uuid, $4) ${which}
       order by v.spec_id, v.operation limit ${PAGE}`,
      [JSON.stringify(scope.specs), scope.label, ...after],
    );
    for (const { spec, operation, vector, isStale } of rows) {
      places.push({ spec, operation, isStale, score: similarity(scope.wanted, toVector(vector)) });
    }
    const last = rows.at(-1);
    if (!last || rows.length < PAGE) return places;
    after = [last.spec, last.operation];
  }
}

/** Equal texts are equally near, however the sums were rounded on the way. */
const step = (score: number): number => Math.round(score * 100_000);
const nameOf = ({ spec, operation }: Place): string => `${spec} ${operation}`;

function best(places: Place[]): Place[] {
  return places
    .filter(({ score }) => score > 0)
    .sort((a, b) => step(b.score) - step(a.score) || (nameOf(a) < nameOf(b) ? -1 : 1))
    .slice(0, WIDTH);
}
