// Takes a finished batch out of sight. Its rows go with the janitor; its key stays for its time.
import type { Store } from "../sql.ts";
import { control, type Controlled, runControl } from "./control.ts";

const DELETE = control({
  name: "delete_batch",
  what: "deleted",
  when: `v_b.finished_at is not null`,
  work: `update :schema.batches b set deleted_at = :schema.clock(), purge_at = :schema.clock() where b.id = $1;`,
});

export async function deleteBatch(store: Store, id: string, by: string | null): Promise<Controlled | undefined> {
  return await runControl(store, DELETE, id, by);
}
