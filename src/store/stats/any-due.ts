// Whether there is something to claim now: for whoever wants to end when there is nothing.
import { LIGHT_IDS } from "../jobs/mark.ts";
import { sql, type Store } from "../sql.ts";

// Held: behind the head of its group (1), dead (3), about to be ended (4), of a paused queue (5, 6).
const ANY_DUE = sql`
select exists (
  select 1 from :schema.jobs j
  where j.kind = any($1::text[]) and j.state = 'pending' and j.hold in (0, 2) and j.run_at <= :schema.clock()
    and j.id not in ${LIGHT_IDS}
) as due`;

/** A job of these kinds could be claimed now; what others run is theirs. */
export async function anyDue(store: Store, kinds: readonly string[]): Promise<boolean> {
  return (await store.query<{ due: boolean }>(ANY_DUE, [kinds])).rows[0]!.due;
}
