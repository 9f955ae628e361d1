import { sql, type Store } from "../sql.ts";

const NOW = sql`select :schema.clock() as now`;

/** The only clock that counts. */
export async function databaseNow(store: Store): Promise<Date> {
  return (await store.query<{ now: Date }>(NOW)).rows[0]!.now;
}
