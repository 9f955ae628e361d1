// Real locks on real connections. A session is one connection a test drives step by step: what it does inside
// begin()…commit() holds its locks until the test lets go. `untilBlocks` waits until PostgreSQL itself says that
// somebody waits for that session, so that a race is arranged and not hoped for.
import { Client } from "pg";
import type { Db, QueryResult } from "#src/db/db.js";
import { makeStore, type Store } from "#src/store/sql.js";

export interface Session {
  readonly pid: number;
  /** The underlying client: what a caller hands over as `tx`. */
  readonly client: Client;
  query<Row = Record<string, unknown>>(text: string, values?: readonly unknown[]): Promise<QueryResult<Row>>;
  begin(): Promise<void>;
  commit(): Promise<void>;
  rollback(): Promise<void>;
  /** Store verbs that run on this connection, inside whatever transaction is open here. */
  store(schema: string): Store;
  close(): Promise<void>;
}

export async function openSession(url: string): Promise<Session> {
  const client = new Client({ connectionString: url, application_name: "race" });
  client.on("error", () => {});
  await client.connect();
  let isOpen = false;
  const query = async <Row>(text: string, values?: readonly unknown[]): Promise<QueryResult<Row>> => {
    const { rows, rowCount } = await client.query(text, values && [...values]);
    return { rows: rows as Row[], rowCount: rowCount ?? 0 };
  };
  const end = async (how: "begin" | "commit" | "rollback"): Promise<void> => {
    await client.query(how);
    isOpen = how === "begin";
  };
  const { rows } = await query<{ pid: number }>("select pg_backend_pid() as pid");
  return {
    pid: rows[0]!.pid,
    client,
    query,
    begin: () => end("begin"),
    commit: () => end("commit"),
    rollback: () => end("rollback"),
    store(schema) {
      // What a store needs of a Db; listening and the like is for others.
      const db: Partial<Db> = {
        tier: "server",
        query,
        // Inside an open transaction a verb's own transaction is part of it: the test decides when it ends.
        async transaction(work) {
          if (isOpen) return await work({ query });
          await end("begin");
          try {
            const result = await work({ query });
            await end("commit");
            return result;
          } catch (error) {
            await end("rollback");
            throw error;
          }
        },
      };
      return makeStore(db as Db, schema);
    },
    async close() {
      await client.end();
    },
  };
}

/** Waits until at least `count` backends wait for a lock that `holder` has. `watcher` must be another session. */
export async function untilBlocks(watcher: Session, holder: Session, count = 1, timeoutMs = 10_000): Promise<void> {
  const until = Date.now() + timeoutMs;
  for (;;) {
    const { rows } = await watcher.query<{ blocked: number }>(
      `select count(*)::integer as blocked from pg_stat_activity a
       where a.pid <> pg_backend_pid() and a.wait_event_type = 'Lock' and $1::integer = any(pg_blocking_pids(a.pid))`,
      [holder.pid],
    );
    if (rows[0]!.blocked >= count) return;
    if (Date.now() > until) throw new Error(`Nobody waited for session ${holder.pid} within ${timeoutMs} ms.`);
  }
}

/** What became of a promise so far. */
export interface Watched<T> {
  readonly promise: Promise<T>;
  readonly isSettled: boolean;
}

export function watch<T>(promise: Promise<T>): Watched<T> {
  let isSettled = false;
  const note = (): void => {
    isSettled = true;
  };
  promise.then(note, note);
  return {
    promise,
    get isSettled() {
      return isSettled;
    },
  };
}
