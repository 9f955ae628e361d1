import { sql, type Store } from "../sql.ts";
import { type AccessToken, type AccessTokenRow, toAccessToken, TOKEN_COLUMNS } from "./rows.ts";

/** Those that count first. */
const LIST = sql`
select ${TOKEN_COLUMNS} from :schema.access_tokens
order by revoked_at desc nulls first, created_at desc, id desc limit 1000`;

const UNSCOPED = sql`
select 1 from :schema.access_tokens
where recipient is null and owner is null and revoked_at is null
  and (expires_at is null or expires_at > :schema.clock())
limit 1`;

export async function listTokens(store: Store): Promise<AccessToken[]> {
  return (await store.query<AccessTokenRow>(LIST)).rows.map(toAccessToken);
}

/** Whether there is one that opens more than one recipient's or owner's things. */
export async function hasUnscopedToken(store: Store): Promise<boolean> {
  return (await store.query(UNSCOPED)).rows.length > 0;
}
