// An access token as the API shows it, and as it takes one.
import type { NewToken } from "../client/tokens.ts";
import type { AccessToken } from "../store/tokens/rows.ts";
import type { AccessTokenView, NewTokenBody } from "./contracts/tokens.ts";
import { given } from "./given.ts";
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

export const toNewToken = (body: NewTokenBody): NewToken => given<NewToken>(body);
