// How many commands of each client were applied. Its row is locked for the commit of a command: commands of one client
// are applied one after the other, each once. What a refused one had written is undone, and the count stays.
import { sql, type Store } from "../sql.ts";

const LOCK = sql`
insert into :schema.batch_clients as c (owner, client, applied, at) values ($1, $2, 0, :schema.clock())
on conflict (owner, client) do update set at = excluded.at
returning applied`;

/** As part of a transaction. */
export async function lockClient(store: Store, owner: string, client: string): Promise<number> {
  return Number((await store.query<{ applied: string }>(LOCK, [owner, client])).rows[0]!.applied);
}

const NOTE = sql`update :schema.batch_clients set applied = $3 where owner = $1 and client = $2 and applied < $3`;

export async function noteApplied(store: Store, owner: string, client: string, applied: number): Promise<void> {
  await store.query(NOTE, [owner, client, applied]);
}

const SAVE = sql`savepoint command`;
const KEEP = sql`release savepoint command`;
const UNDO = sql`rollback to savepoint command`;

/** As part of a transaction, which can go on if `work` throws: nothing of what it wrote stays. */
export async function undoable<T>(store: Store, work: () => Promise<T>): Promise<T> {
  await store.query(SAVE);
  let result: T;
  try {
    result = await work();
  } catch (error) {
    // A transaction that cannot do this cannot commit either: what `work` failed with says why.
    await store.query(UNDO).catch(() => undefined);
    throw error;
  }
  await store.query(KEEP);
  return result;
}
