// Ends the leases of one worker now, for a process that knows it is about to die: what it ran is recovered at once by
// whoever looks, as after any crash, instead of when the leases run out.
import { sql, type Store } from "../sql.ts";

const ABANDON = sql`
update :schema.leases set expires_at = :schema.clock() - interval '1 millisecond' where worker_id = $1::uuid`;

export async function abandonLeases(store: Store, workerId: string): Promise<void> {
  await store.query(ABANDON, [workerId]);
}
