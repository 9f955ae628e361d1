// Which job a key stands for, by the ledger: also when the job itself is gone.
import { sql, type Store } from "../sql.ts";

export interface KnownKey {
  jobId: string;
  /** null: it is remembered for ever. */
  expiresAt: Date | null;
}

const FIND = sql`
select job_id as "jobId", expires_at as "expiresAt" from :schema.job_keys
where kind = $1 and key = $2 and (expires_at is null or expires_at > :schema.clock())`;

export async function findKey(store: Store, kind: string, key: string): Promise<KnownKey | null> {
  return (await store.query<KnownKey>(FIND, [kind, key])).rows[0] ?? null;
}
