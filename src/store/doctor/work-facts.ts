// Jobs whose process died, for a person who asks whether all is well. By index, and capped.
import { sql, type Store } from "../sql.ts";

const SUSPECTS = sql`
select s.kind, count(*)::integer as jobs, max(s.crash_count)::integer as crashes
from (select kind, crash_count from :schema.jobs where hold in (2, 4) limit 1000) s group by s.kind order by 2 desc limit 20`;

export interface Suspects {
  kind: string;
  jobs: number;
  /** The most often that one of them ended its process while it ran alone. */
  crashes: number;
}

/** Jobs whose process died while they ran. */
export async function readSuspects(store: Store): Promise<Suspects[]> {
  return (await store.query<Suspects>(SUSPECTS)).rows;
}
