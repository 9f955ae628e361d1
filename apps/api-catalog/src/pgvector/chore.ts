// Keeps pgvector's side of the vectors: makes it when the database has the extension, fills in what is not there yet (all of it,
// in a database that got pgvector later), and removes indexes of models that are gone.
import { type Chore, defineChore, type Duration, type Holdfast } from "holdfast";
import type { Model } from "../model.ts";
import { findPgvector, indexedAs, type Pgvector, readAvailable, type VectorModel, vectorModelOf } from "./detect.ts";
import { fillNear } from "./fill.ts";
import { createExtension, dropOldIndexes, makeColumn, makeIndex } from "./prepare.ts";

/** "auto": when the database has it. "create": made if it is not, and this role may. "off": never. */
export type PgvectorUse = "auto" | "create" | "off";

export interface NearChoreInput {
  hf: Holdfast;
  model: Model;
  use: PgvectorUse;
  every: Duration;
}

/** Rows that are copied in one transaction: each is a step into the index. */
const ROWS = 100;

export function makeNearChore({ hf, model, use, every }: NearChoreInput): Chore {
  return defineChore("catalog-nearest", {
    every,
    batchSize: ROWS,
    async run(chore) {
      const known = vectorModelOf(await model.label(chore.signal));
      const pgvector = await prepare(hf, known, use);
      if (!pgvector) return;
      await chore.inBatches("filled", (limit) => fillNear(hf, pgvector, { model: known, limit }));
      if (pgvector.ownsTable && chore.hasTime()) chore.count("dropped", await dropOldIndexes(hf, known));
    },
  });
}

async function prepare(hf: Holdfast, model: VectorModel, use: PgvectorUse): Promise<Pgvector | undefined> {
  let found = await findPgvector(hf.sql, model);
  if (!found && use === "create") {
    const { installed, available, mayCreate } = await readAvailable(hf.sql);
    if (installed !== null || available === null || !mayCreate) return undefined;
    await createExtension(hf);
    found = await findPgvector(hf.sql, model);
  }
  if (!found || (!found.hasColumn && !found.ownsTable)) return undefined;
  if (!found.hasColumn) await makeColumn(hf, found);
  if (!found.hasIndex && found.ownsTable && indexedAs(model, found.version)) await makeIndex(hf, found, model);
  return await findPgvector(hf.sql, model);
}
