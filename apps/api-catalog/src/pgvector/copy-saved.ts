// Copies what a run has just saved, so that a search need not compare it one by one until the chore comes. The run does not
// depend on it: whatever goes wrong here, the chore does it later.
import type { Holdfast } from "holdfast";
import { findPgvector, indexedAs, vectorModelOf } from "./detect.ts";
import { fillNear } from "./fill.ts";

export async function copySaved(
  hf: Holdfast,
  { spec, label, limit }: { spec: string; label: string; limit: number },
): Promise<void> {
  const model = vectorModelOf(label);
  try {
    const pgvector = await findPgvector(hf.sql, model);
    if (!pgvector?.hasColumn) return;
    // An index is made before its vectors come: then nobody waits while it is built.
    if (!pgvector.hasIndex && indexedAs(model, pgvector.version)) return;
    await fillNear(hf, pgvector, { model, spec, limit });
  } catch {
    // See above.
  }
}
