// Errors of a batch that look alike, the most frequent first.
import type { ErrorRecord } from "../../job/outcome.ts";
import { sql, type Store } from "../sql.ts";

/** Errors of a batch that look alike, with a count and a sample. */
export interface ErrorGroup {
  /** The same for errors that differ only in numbers, ids, addresses and quoted texts. */
  fingerprint: string;
  count: number;
  firstAt: Date;
  lastAt: Date;
  /** The item that failed last in this way. */
  lastSeq: number;
  sample: ErrorRecord;
}

const GROUPS = sql`
select fingerprint, count, first_at as "firstAt", last_at as "lastAt", last_seq as "lastSeq", sample
from :schema.batch_errors where batch_id = $1::uuid order by count desc, fingerprint limit 201`;

export async function listErrorGroups(store: Store, batchId: string): Promise<ErrorGroup[]> {
  const { rows } = await store.query<ErrorGroup & { count: string; lastSeq: string }>(GROUPS, [batchId]);
  return rows.map((row) => ({ ...row, count: Number(row.count), lastSeq: Number(row.lastSeq) }));
}
