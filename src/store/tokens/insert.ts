import type { Role } from "../../shared/roles.ts";
import { sql, type Store } from "../sql.ts";
import { type AccessToken, type AccessTokenRow, toAccessToken, TOKEN_COLUMNS } from "./rows.ts";

export interface NewAccessToken {
  id: string;
  /** SHA-256, in hexadecimal. */
  secretHash: string;
  name: string;
  role: Role;
  recipient: string | null;
  owner: string | null;
  /** null: never. */
  expiresInMs: number | null;
}

const INSERT = sql`
insert into :schema.access_tokens (id, secret_hash, name, role, recipient, owner, created_at, expires_at)
values ($1::uuid, decode($2, 'hex'), $3, $4, $5, $6, :schema.clock(), :schema.clock() + $7::bigint * interval '1 millisecond')
returning ${TOKEN_COLUMNS}`;

export async function insertToken(store: Store, token: NewAccessToken): Promise<AccessToken> {
  const { id, secretHash, name, role, recipient, owner, expiresInMs } = token;
  const values = [id, secretHash, name, role, recipient, owner, expiresInMs];
  return toAccessToken((await store.query<AccessTokenRow>(INSERT, values)).rows[0]!);
}
