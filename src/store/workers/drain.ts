// Asks one worker to take no more jobs, to take some again, or to end; and what a worker was told by people.
import { sql, type Store } from "../sql.ts";

// Asked twice is asked once: the first one's name stays.
const DRAIN = sql`
update :schema.workers set drain_asked_at = coalesce(drain_asked_at, :schema.clock()),
  drain_asked_by = case when drain_asked_at is null then $2 else drain_asked_by end
where id = $1 returning name`;

const RESUME = sql`
update :schema.workers set drain_asked_at = null, drain_asked_by = null
where id = $1 and stop_asked_at is null returning name`;

const STOP = sql`
update :schema.workers set stop_asked_at = coalesce(stop_asked_at, :schema.clock()),
  drain_asked_at = coalesce(drain_asked_at, :schema.clock()),
  drain_asked_by = case when stop_asked_at is null then $2 else drain_asked_by end
where id = $1 returning name`;

const STOPPING = sql`select 1 from :schema.workers where id = $1 and stop_asked_at is not null`;

const ORDERS = sql`
select array(select q.name from :schema.queues q where q.paused_at is not null) as paused,
  exists (select 1 from :schema.workers w where w.id = $1 and w.drain_asked_at is not null) as drains,
  exists (select 1 from :schema.workers w where w.id = $1 and w.stop_asked_at is not null) as stops`;

export interface Orders {
  /** Queues that are paused. */
  paused: string[];
  /** This worker takes no more jobs. */
  drains: boolean;
  /** This worker is to end. */
  stops: boolean;
}

/** Its name; null: there is no such worker. */
export async function drainWorker(store: Store, id: string, by: string | null): Promise<string | null> {
  return (await store.query<{ name: string }>(DRAIN, [id, by])).rows[0]?.name ?? null;
}

/** Its name; null: there is no such worker. */
export async function stopWorker(store: Store, id: string, by: string | null): Promise<string | null> {
  return (await store.query<{ name: string }>(STOP, [id, by])).rows[0]?.name ?? null;
}

export async function isStopping(store: Store, id: string): Promise<boolean> {
  return (await store.query(STOPPING, [id])).rowCount > 0;
}

/** Its name; null: there is no such worker, or it is about to end. */
export async function resumeWorker(store: Store, id: string): Promise<string | null> {
  return (await store.query<{ name: string }>(RESUME, [id])).rows[0]?.name ?? null;
}

export async function readOrders(store: Store, workerId: string): Promise<Orders> {
  return (await store.query<Orders>(ORDERS, [workerId])).rows[0]!;
}
