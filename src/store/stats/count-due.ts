import { sql, type Store } from "../sql.ts";

const COUNT_DUE = sql`
select count(*)::integer as due from (
  select 1 from :schema.jobs j
  where j.kind = any($1::text[])
    and (j.state = 'running' or (j.state = 'pending' and j.hold not in (1, 5, 6) and j.run_at <= :schema.clock()))
  limit $2
) found`;

/** How many jobs of these kinds run or could run now, counted up to `limit`. */
export async function countDue(store: Store, kinds: readonly string[], limit: number): Promise<number> {
  return (await store.query<{ due: number }>(COUNT_DUE, [kinds, limit])).rows[0]!.due;
}
