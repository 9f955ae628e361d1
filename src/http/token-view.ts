// An access token as the API shows it, and as it takes one.
import type { NewToken } from "../client/tokens.ts";
import type { AccessToken } from "../store/tokens/rows.ts";
import type { AccessTokenView, NewTokenBody } from "./contracts/tokens.ts";
import { iso } from "./job-view.ts";

export function toTokenView(token: AccessToken): AccessTokenView {
  return {
    ...token,
    createdAt: token.createdAt.toISOString(),
    expiresAt: iso(token.expiresAt),
    lastUsedAt: iso(token.lastUsedAt),
    revokedAt: iso(token.revokedAt),
  };
}

/** Null is "not given". The client checks each of them. */
export function toNewToken(body: NewTokenBody): NewToken {
  const given = Object.entries(body).filter(([, value]) => value !== null && value !== undefined);
  return Object.fromEntries(given) as unknown as NewToken;
}
