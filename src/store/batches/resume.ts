// A paused batch goes on: its slots are filled again in the same commit.
import type { Store } from "../sql.ts";
import { control, type Controlled, runControl } from "./control.ts";

const RESUME = control({
  name: "resume_batch",
  what: "resumed",
  when: `v_b.state = 'paused'`,
  work: `
update :schema.batches b set state = case when b.started_at is null then 'queued' else 'running' end, paused_at = null
where b.id = $1;`,
});

export async function resumeBatch(store: Store, id: string, by: string | null): Promise<Controlled | undefined> {
  return await runControl(store, RESUME, id, by);
}
