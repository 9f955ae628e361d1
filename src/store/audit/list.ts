// The log of what people did, newest first, page by page.
import { sql, type Store } from "../sql.ts";

/** One request that acted, or was refused: who, what, when, and how it was answered. */
export interface AuditEntry {
  id: string;
  at: Date;
  caller: string;
  action: string;
  target: string;
  status: number;
}

const LIST = sql`
select id, at, caller, action, target, status from :schema.audit
where ($1::bigint is null or id < $1::bigint) order by id desc limit $2`;

export async function listAudit(store: Store, before: string | null, limit: number): Promise<AuditEntry[]> {
  return (await store.query<AuditEntry>(LIST, [before, limit])).rows;
}
