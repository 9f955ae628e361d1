// Copies vectors from their bytes into pgvector's column. It adds nothing and loses nothing: what is not copied yet is compared
// from its bytes, so a copy may come late, fail, or be made again.
import type { Holdfast } from "holdfast";
import { toVector } from "../vectors.ts";
import type { Pgvector, VectorModel } from "./detect.ts";

export interface FillInput {
  model: VectorModel;
  /** Of this spec only. */
  spec?: string;
  limit: number;
}

export async function fillNear(hf: Holdfast, { schema }: Pgvector, input: FillInput): Promise<number> {
  const { model, spec, limit } = input;
  return await hf.sql.transaction(async (tx) => {
    // Locked until they are copied: a vector that is replaced meanwhile cannot be overtaken by its copy.
    const { rows } = await tx.query<{ spec: string; operation: string; vector: Uint8Array }>(
      `select spec_id as spec, operation, vector from :schema.catalog_vectors
       where model = $1 and near is null and octet_length(vector) = $2 and ($3::uuid is null or spec_id = $3)
       order by spec_id, operation limit $4 for update skip locked`,
      [model.label, model.dimension * 4, spec ?? null, limit],
    );
    if (rows.length === 0) return 0;
    const list = rows.map((row) => ({ spec: row.spec, operation: row.operation, near: toText(toVector(row.vector)) }));
    await tx.query(
      `update :schema.catalog_vectors v set near = r.near::${schema}.vector
       from jsonb_to_recordset($2::jsonb) as r (spec uuid, operation text, near text)
       where v.spec_id = r.spec and v.model = $1 and v.operation = r.operation`,
      [model.label, JSON.stringify(list)],
    );
    return rows.length;
  });
}

export const toText = (vector: Float32Array): string => `[${vector.join(",")}]`;
