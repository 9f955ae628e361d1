// Which workers there are: for people and screens. Nothing is decided by these rows; leases are what counts.
import { sql, type Store } from "../sql.ts";

export interface WorkerRow {
  id: string;
  name: string;
  concurrency: number;
  kinds: readonly string[];
}

const REGISTER = sql`
insert into :schema.workers (id, name, started_at, beat_at, concurrency, kinds)
values ($1, $2, :schema.clock(), :schema.clock(), $3, $4)
on conflict (id) do update set beat_at = :schema.clock()`;

const BEAT = sql`update :schema.workers set beat_at = :schema.clock(), running = $2 where id = $1`;
const REMOVE = sql`delete from :schema.workers where id = $1`;
const REMOVE_SILENT = sql`
delete from :schema.workers where id in (
  select id from :schema.workers where beat_at < :schema.clock() - interval '5 minutes' limit $1 for update skip locked)`;

export async function registerWorker(store: Store, worker: WorkerRow): Promise<void> {
  await store.query(REGISTER, [worker.id, worker.name, worker.concurrency, worker.kinds]);
}

export async function beatWorker(store: Store, id: string, running: number): Promise<void> {
  await store.query(BEAT, [id, running]);
}

export async function removeWorker(store: Store, id: string): Promise<void> {
  await store.query(REMOVE, [id]);
}

/** Workers that have not been heard of for five minutes. */
export async function removeSilentWorkers(store: Store, limit: number): Promise<number> {
  return (await store.query(REMOVE_SILENT, [limit])).rowCount;
}

const COUNT_SILENT = sql`
select count(*)::integer as count from :schema.workers where beat_at < :schema.clock() - interval '5 minutes'`;

export async function countSilentWorkers(store: Store): Promise<number> {
  return (await store.query<{ count: number }>(COUNT_SILENT)).rows[0]!.count;
}
