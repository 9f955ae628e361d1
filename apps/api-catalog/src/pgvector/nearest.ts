// The nearest vectors of some specs, found by pgvector. By its index when the model has one; by comparing all of these specs'
// vectors inside the database when there is none, or when the index, which knows nothing of specs, gave too few.
import type { SqlTransaction } from "holdfast";
import { canResume, indexedAs, type Pgvector, type VectorModel } from "./detect.ts";
import { toText } from "./fill.ts";
import { quoted } from "./prepare.ts";

export interface NearestInput {
  model: VectorModel;
  specs: readonly string[];
  wanted: Float32Array;
  limit: number;
  /** So many there are to be found, at most. */
  most: number;
}

export interface Near {
  spec: string;
  operation: string;
  score: number;
  /** null: it has left the document. */
  isStale: boolean | null;
}

/** How many the index looks at for one search: more finds more, and takes longer. 1000 is the most there is. */
const LOOKS_AT = 400;

export async function readNearest(tx: SqlTransaction, pgvector: Pgvector, input: NearestInput): Promise<Near[]> {
  const type = pgvector.hasIndex ? indexedAs(input.model, pgvector.version) : undefined;
  if (type) {
    const settings = { "hnsw.ef_search": String(LOOKS_AT), ...(canResume(pgvector) && RESUMING) };
    for (const [name, value] of Object.entries(settings)) {
      await tx.query("select set_config($1, $2, true)", [name, value]);
    }
    const { schema } = pgvector;
    const sized = `${schema}.${type}(${input.model.dimension})`;
    const found = await query(
      tx,
      schema,
      input,
      `v.near::${sized} operator(${schema}.<#>) $2::${schema}.vector::${sized}`,
    );
    if (found.length >= Math.min(input.limit, input.most)) return found;
  }
  // No index orders a sum.
  return await query(tx, pgvector.schema, input, DISTANCE(pgvector.schema, "v") + " + 0");
}

const RESUMING = { "hnsw.iterative_scan": "strict_order" };

/** Vectors have length 1: the inner product is the similarity, and pgvector gives it with a minus. */
const DISTANCE = (schema: string, from: string): string =>
  `(${from}.near operator(${schema}.<#>) $2::${schema}.vector)`;

/** The model is a literal and no parameter: an index of one model is only used where it is known to be that one. */
async function query(tx: SqlTransaction, schema: string, input: NearestInput, order: string): Promise<Near[]> {
  const label = await quoted(tx, input.model.label);
  const { rows } = await tx.query<Near>(
    `select n.spec_id as spec, n.operation, -${DISTANCE(schema, "n")} as score, (n.hash <> o.hash) as "isStale"
     from (
       select v.spec_id, v.operation, v.hash, v.near from :schema.catalog_vectors v
       where v.model = ${label} and v.near is not null and v.spec_id = any ($1::uuid[])
       order by ${order} limit $3
     ) n left join :schema.catalog_operations o on o.spec_id = n.spec_id and o.operation = n.operation`,
    [input.specs, toText(input.wanted), input.limit],
  );
  return rows;
}
