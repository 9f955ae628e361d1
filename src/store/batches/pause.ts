// Nothing of the batch starts any more. Items in slots that nobody runs yet are parked; those that run finish, and so do
// suspects, which had begun.
import type { Store } from "../sql.ts";
import { PARKED } from "./advance.ts";
import { control, type Controlled, runControl } from "./control.ts";

const PAUSE = control({
  name: "pause_batch",
  what: "paused",
  when: `v_b.state in ('queued', 'running')`,
  declares: ["v_parked bigint"],
  work: `
update :schema.batches b set state = 'paused', paused_at = :schema.clock() where b.id = $1;
update :schema.jobs j set hold = ${PARKED} where j.batch_id = $1 and j.state = 'pending' and j.hold in (0, 5);
get diagnostics v_parked = row_count;`,
  change: { admitted: "-v_parked", parked: "v_parked" },
});

export async function pauseBatch(store: Store, id: string, by: string | null): Promise<Controlled | undefined> {
  return await runControl(store, PAUSE, id, by);
}
