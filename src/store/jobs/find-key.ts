// Which job a key stands for, by the ledger: also when the job itself is gone.
import { sql, type Store } from "../sql.ts";

export interface KnownKey {
  jobId: string;
  /** null: it is remembered for ever. Past, while the job lives: it keeps its key. */
  expiresAt: Date | null;
}

const FIND = sql`
select k.job_id as "jobId", k.expires_at as "expiresAt" from :schema.job_keys k
where k.kind = $1 and k.key = $2 and (k.expires_at is null or k.expires_at > :schema.clock()
  or exists (select 1 from :schema.jobs j where j.id = k.job_id))`;

export async function findKey(store: Store, kind: string, key: string): Promise<KnownKey | null> {
  return (await store.query<KnownKey>(FIND, [kind, key])).rows[0] ?? null;
}
