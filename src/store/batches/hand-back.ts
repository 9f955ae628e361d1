// What a run has to know of its batch before it hands something back.
import { sql, type Store } from "../sql.ts";

const READ = sql`select b.owner, b.hand_ms as "handMs" from :schema.batches b where b.id = $1::uuid`;

export async function readHandBack(
  store: Store,
  batchId: string,
): Promise<{ owner: string | null; handMs: number } | undefined> {
  const { rows } = await store.query<{ owner: string | null; handMs: string }>(READ, [batchId]);
  return rows[0] && { owner: rows[0].owner, handMs: Number(rows[0].handMs) };
}
