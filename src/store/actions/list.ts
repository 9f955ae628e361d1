import { sql, type Store } from "../sql.ts";
import { type Action, ACTION_COLUMNS } from "./rows.ts";

const LIST = sql`
select ${ACTION_COLUMNS} from :schema.actions where id < coalesce($1::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
order by id desc limit $2`;

const READ = sql`select ${ACTION_COLUMNS} from :schema.actions where id = $1::uuid`;

/** Newest first. */
export async function listActions(store: Store, before: string | null, limit: number): Promise<Action[]> {
  return (await store.query<Action>(LIST, [before, limit])).rows;
}

export async function readAction(store: Store, id: string): Promise<Action | undefined> {
  return (await store.query<Action>(READ, [id])).rows[0];
}
