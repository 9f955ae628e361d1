// The key that signs views. Every process on one database has the same.
import { sql, type Store } from "../sql.ts";

const KEY = sql`select s.value from :schema.secrets s where s.name = 'views'`;

/** Null: this role may not read it, or somebody took it away. */
export async function readViewKey(store: Store): Promise<string | null> {
  return (await store.query<{ value: string }>(KEY)).rows[0]?.value ?? null;
}
