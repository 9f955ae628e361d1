// The token that a caller shows, if it is one that counts: not revoked, not expired.
import { sql, type Store } from "../sql.ts";
import { type AccessToken, type AccessTokenRow, toAccessToken, TOKEN_COLUMNS } from "./rows.ts";

const FIND = sql`
select ${TOKEN_COLUMNS}, encode(secret_hash, 'hex') as secret_hash from :schema.access_tokens
where id = $1::uuid and revoked_at is null and (expires_at is null or expires_at > :schema.clock())`;

/** Only by whoever has shown the secret, and at most once a minute: reading must not become writing. */
const TOUCH = sql`
update :schema.access_tokens set last_used_at = :schema.clock()
where id = $1::uuid and (last_used_at is null or last_used_at < :schema.clock() - interval '1 minute')`;

export interface FoundToken {
  token: AccessToken;
  secretHash: string;
}

export async function findToken(store: Store, id: string): Promise<FoundToken | undefined> {
  const { rows } = await store.query<AccessTokenRow & { secret_hash: string }>(FIND, [id]);
  return rows[0] && { token: toAccessToken(rows[0]), secretHash: rows[0].secret_hash };
}

export async function touchToken(store: Store, id: string): Promise<void> {
  await store.query(TOUCH, [id]);
}
