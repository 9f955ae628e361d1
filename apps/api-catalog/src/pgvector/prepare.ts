// Makes what a search by pgvector needs: a column beside the bytes, and one index for each model. Only the janitor's chore calls
// it, so one process at a time does.
//
// The column, the indexes and the trigger all depend on the extension's type: `drop extension vector cascade` takes all of
// them away and leaves the bytes, from which everything can be made again.
import type { Holdfast, SqlTransaction } from "holdfast";
import { INDEX_PREFIX, indexedAs, indexName, type Pgvector, type VectorModel } from "./detect.ts";

/** Nobody who searches or embeds waits long behind a change that waits for somebody else. */
const LOCK_MS = 2_000;

export async function createExtension(hf: Holdfast): Promise<void> {
  await hf.sql.query("create extension if not exists vector");
}

/**
 * `near` is empty until it is filled, and becomes empty again with every other vector: by a trigger, so that it holds for
 * processes that know nothing of it, and one whose condition names the column, so that it goes with it.
 */
export async function makeColumn(hf: Holdfast, { schema }: Pgvector): Promise<void> {
  await changeTables(hf, async (tx) => {
    await tx.query(`alter table :schema.catalog_vectors add column if not exists near ${schema}.vector`);
    await tx.query(
      "create index if not exists catalog_vectors_not_near on :schema.catalog_vectors (model, spec_id) where near is null",
    );
    await tx.query(
      `create or replace function :schema.catalog_forget_near() returns trigger language plpgsql
       as $$ begin new.near := null; return new; end $$`,
    );
    await tx.query(
      `create or replace trigger catalog_vectors_forget_near before update of vector on :schema.catalog_vectors
       for each row when (old.near is not null and old.vector is distinct from new.vector)
       execute function :schema.catalog_forget_near()`,
    );
  });
}

/** Before the first vector is filled in, the index has nothing to build; each one that comes later is a short step. */
export async function makeIndex(hf: Holdfast, pgvector: Pgvector, model: VectorModel): Promise<void> {
  const type = indexedAs(model, pgvector.version);
  if (!type) return;
  const { schema } = pgvector;
  const name = indexName(model);
  await changeTables(hf, async (tx) => {
    const label = await quoted(tx, model.label);
    // One that was left behind half made.
    await tx.query(`drop index if exists :schema.${name}`);
    await tx.query(
      `create index ${name} on :schema.catalog_vectors
       using hnsw ((near::${schema}.${type}(${model.dimension})) ${schema}.${type}_ip_ops)
       where model = ${label} and near is not null`,
    );
    await tx.query(`comment on index :schema.${name} is ${label}`);
  });
}

/** Indexes of models that have no vectors any more. */
export async function dropOldIndexes(hf: Holdfast, model: VectorModel): Promise<number> {
  const { rows } = await hf.sql.query<{ name: string }>(
    `select c.relname as name
     from pg_index i join pg_class c on c.oid = i.indexrelid
     where i.indrelid = to_regclass(':schema.catalog_vectors') and starts_with(c.relname, $1) and c.relname <> $2
       and not exists (
         select 1 from :schema.catalog_vectors v where v.model = obj_description(c.oid, 'pg_class'))`,
    [INDEX_PREFIX, indexName(model)],
  );
  for (const { name } of rows) {
    await changeTables(hf, (tx) => tx.query(`drop index if exists :schema.${name}`));
  }
  return rows.length;
}

export async function quoted(sql: SqlTransaction, text: string): Promise<string> {
  const { rows } = await sql.query<{ literal: string }>("select quote_literal($1) as literal", [text]);
  return rows[0]!.literal;
}

async function changeTables(hf: Holdfast, change: (tx: SqlTransaction) => Promise<unknown>): Promise<void> {
  await hf.sql.transaction(async (tx) => {
    await tx.query("select set_config('lock_timeout', $1, true)", [`${LOCK_MS}ms`]);
    await change(tx);
  });
}
