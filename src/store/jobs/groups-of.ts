import { sql, type Store } from "../sql.ts";

const GROUPS_OF = sql`
select distinct group_key from :schema.jobs where id = any($1::uuid[]) and group_key is not null`;

/** The groups these jobs belong to: their locks are taken before anything about their heads is decided. */
export async function groupsOf(store: Store, ids: readonly string[]): Promise<string[]> {
  const { rows } = await store.query<{ group_key: string }>(GROUPS_OF, [ids]);
  return rows.map((row) => row.group_key);
}
