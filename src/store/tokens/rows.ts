// Row → access token. The hash of the secret goes no further than to whoever compares it.
import type { Role } from "../../shared/roles.ts";

/** What is known of an access token; never the token itself. */
export interface AccessToken {
  id: string;
  name: string;
  role: Role;
  /** It opens only what is for this recipient. */
  recipient: string | null;
  /** It opens only what is this owner's. */
  owner: string | null;
  createdAt: Date;
  expiresAt: Date | null;
  /** To the minute. */
  lastUsedAt: Date | null;
  revokedAt: Date | null;
}

export interface AccessTokenRow {
  id: string;
  name: string;
  role: Role;
  recipient: string | null;
  owner: string | null;
  created_at: Date;
  expires_at: Date | null;
  last_used_at: Date | null;
  revoked_at: Date | null;
}

export const TOKEN_COLUMNS = "id, name, role, recipient, owner, created_at, expires_at, last_used_at, revoked_at";

export function toAccessToken(row: AccessTokenRow): AccessToken {
  return {
    id: row.id,
    name: row.name,
    role: row.role,
    recipient: row.recipient,
    owner: row.owner,
    createdAt: row.created_at,
    expiresAt: row.expires_at,
    lastUsedAt: row.last_used_at,
    revokedAt: row.revoked_at,
  };
}
