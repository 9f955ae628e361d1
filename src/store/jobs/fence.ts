// The fence for a transaction: locks the job's row if this run still holds it, until the commit. A takeover skips the
// locked row and comes back; one that came first leaves nothing to lock.
import { sql, type Store } from "../sql.ts";
import { type EndedRun, lockGroupPatiently, type SettledRun, settleRuns } from "./settle.ts";

// One text parameter, used once: it also runs inside transactions of other libraries.
const HELD = `select 1 as held from jsonb_to_record($1::text::jsonb) as r (id uuid, token bigint)
join :schema.jobs j on j.id = r.id and j.token = r.token and j.state = 'running' for update of j`;
const LOCK_IF_HELD = sql`${HELD}`;
const LOCK_IF_HELD_AND_FREE = sql`${HELD} skip locked`;

/** In the same transaction, at its end: a transaction that took as long as a lease must not be taken for a dead worker. */
const RENEW = sql`
update :schema.leases set expires_at = greatest(expires_at,
  clock_timestamp() + (:schema.clock() - statement_timestamp()) + lease_ms * interval '1 millisecond')
where ctid = any(array(
  select ctid from :schema.leases where token = $1::bigint and lease_ms = $2 for update skip locked))`;

export interface HeldRun {
  id: string;
  token: string;
  leaseMs: number;
}

export async function lockIfHeld(store: Store, run: HeldRun): Promise<boolean> {
  return (await store.query(LOCK_IF_HELD, [asJson(run)])).rows.length === 1;
}

/** False as well if another transaction has the row: for whoever knows that this would be its own. */
export async function lockIfHeldAndFree(store: Store, run: HeldRun): Promise<boolean> {
  return (await store.query(LOCK_IF_HELD_AND_FREE, [asJson(run)])).rows.length === 1;
}

const asJson = (run: HeldRun): string => `{"id":"${run.id}","token":${run.token}}`;

/** False: somebody else is at the lease's row right now. */
export async function renewInside(store: Store, run: HeldRun): Promise<boolean> {
  return (await store.query(RENEW, [run.token, run.leaseMs])).rowCount === 1;
}

/** Completion as part of a transaction that is fenced already; what the caller wrote commits with it. */
export async function completeInside(store: Store, run: EndedRun): Promise<SettledRun | undefined> {
  if (run.group !== null) await lockGroupPatiently(store, run.group);
  return (await settleRuns(store, [{ ...run, group: null }]))[0];
}
