import { sql, type Store } from "../sql.ts";

const REVOKE = sql`
update :schema.access_tokens set revoked_at = coalesce(revoked_at, :schema.clock()) where id = $1::uuid`;

/** From the next request on. Twice is once; false if there is no such token. */
export async function revokeToken(store: Store, id: string): Promise<boolean> {
  return (await store.query(REVOKE, [id])).rowCount > 0;
}
