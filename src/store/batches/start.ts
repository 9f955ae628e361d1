// The first item of a batch runs: it is no longer queued.
import { routine, type Store } from "../sql.ts";
import { ADVANCED, advance, LOCK_BATCH } from "./advance.ts";

const START = routine({
  name: "start_batch",
  takes: ["uuid"],
  gives: ADVANCED,
  settings: ["lock_timeout = '1s'"],
  first: `
if not exists (select 1 from :schema.batches b where b.id = $1 and b.started_at is null) then return; end if;
${LOCK_BATCH("$1")}
if not exists (select 1 from :schema.batches b where b.id = $1 and b.started_at is null) then return; end if;`,
  body: `select a.* from ${advance({ what: "started" })} a`,
});

/** True: it was queued until now. */
export async function startBatch(store: Store, id: string): Promise<boolean> {
  return (await store.query(START, [id])).rows.length > 0;
}
