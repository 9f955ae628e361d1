import { routine, type Store } from "../sql.ts";

/** Entries are in the order of time: those to go are the first by id. */
const PURGE = routine({
  name: "purge_audit",
  takes: ["integer", "bigint"],
  gives: "count",
  body: `delete from :schema.audit where id = any(array(
  select old.id from (select id, at from :schema.audit order by id limit $1) old
  where old.at < :schema.clock() - $2 * interval '1 millisecond'))`,
});

export async function purgeAudit(store: Store, limit: number, olderThanMs: number): Promise<number> {
  return Number((await store.query<{ count: string }>(PURGE, [limit, olderThanMs])).rows[0]!.count);
}
