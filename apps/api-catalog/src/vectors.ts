// The rows of vectors: which are missing, how they are written, how they are read.
import { Gone, type SqlTransaction } from "holdfast";

export interface MissingOperation {
  operation: string;
  hash: string;
  content: string;
}

/** Operations without a vector of what they say now. */
export async function readMissing(
  sql: SqlTransaction,
  { spec, model, epoch }: { spec: string; model: string; epoch: string },
): Promise<MissingOperation[]> {
  const { rows } = await sql.query<MissingOperation>(
    `select o.operation, o.hash, o.content from :schema.catalog_operations o
     where o.spec_id = $1 and not exists (
       select 1 from :schema.catalog_vectors v
       where v.spec_id = o.spec_id and v.model = $2 and v.operation = o.operation and v.hash = o.hash and v.epoch >= $3)
     order by o.operation`,
    [spec, model, epoch],
  );
  return rows;
}

export async function countMissing(
  sql: SqlTransaction,
  { spec, model, epoch }: { spec: string; model: string; epoch: string },
): Promise<number> {
  const { rows } = await sql.query<{ n: number }>(
    `select count(*)::int as n from :schema.catalog_operations o
     where o.spec_id = $1 and not exists (
       select 1 from :schema.catalog_vectors v
       where v.spec_id = o.spec_id and v.model = $2 and v.operation = o.operation and v.hash = o.hash and v.epoch >= $3)`,
    [spec, model, epoch],
  );
  return rows[0]!.n;
}

export interface VectorsInput {
  spec: string;
  model: string;
  epoch: string;
  generation: string;
  items: readonly MissingOperation[];
  vectors: readonly Float32Array[];
  /** Whose work it is: a try that saved something is not one of those after which a spec is given up. */
  try: { job: string; attempt: number };
}

/** These rows and no others. A spec that is gone ends the job. */
export async function saveVectors(tx: SqlTransaction, input: VectorsInput): Promise<void> {
  const { spec, model, epoch, generation, items, vectors } = input;
  const { rows } = await tx.query<{ model: string | null }>(
    "select model from :schema.catalog_specs where id = $1 for key share",
    [spec],
  );
  if (!rows[0]) throw new Gone("The spec was deleted while it was being embedded.");
  const list = items.map(({ operation, hash }, index) => ({ operation, hash, vector: toText(vectors[index]!) }));
  await tx.query(
    `insert into :schema.catalog_vectors (spec_id, model, operation, hash, epoch, generation, vector)
     select $1, $2, r.operation, r.hash, $3, $4, decode(r.vector, 'base64')
     from jsonb_to_recordset($5::jsonb) as r (operation text, hash text, vector text)
     on conflict (spec_id, model, operation) do update
     set hash = excluded.hash, epoch = excluded.epoch, generation = excluded.generation, vector = excluded.vector`,
    [spec, model, epoch, generation, JSON.stringify(list)],
  );
  await tx.query(
    `update :schema.catalog_specs set fruitful_job_id = $2, fruitful_attempt = $3
     where id = $1 and (fruitful_job_id is distinct from $2 or fruitful_attempt is distinct from $3)`,
    [spec, input.try.job, input.try.attempt],
  );
  // There is no other model to protect yet: what is there can be found at once.
  if (rows[0].model === null) {
    await tx.query("update :schema.catalog_specs set model = $2 where id = $1 and model is null", [spec, model]);
  }
}

const toText = (vector: Float32Array): string =>
  Buffer.from(vector.buffer, vector.byteOffset, vector.byteLength).toString("base64");

/** Copied: rows come at any place of a buffer, and numbers only at every fourth. */
export const toVector = (bytes: Uint8Array): Float32Array => new Float32Array(Uint8Array.from(bytes).buffer);

/** Both are of length 1. */
export function similarity(a: Float32Array, b: Float32Array): number {
  let sum = 0;
  for (let at = 0; at < a.length; at += 1) sum += a[at]! * b[at]!;
  return sum;
}
