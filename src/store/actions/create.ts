import { sql, type Store } from "../sql.ts";
import { type Action, ACTION_COLUMNS } from "./rows.ts";

const CREATE = sql`
insert into :schema.actions (id, verb, filter, title, asked_by, created_at, per_minute, below, expected)
values ($1::uuid, $2, $3::text::jsonb, $4, $5, :schema.clock(), $6, $1::uuid, $7)
returning ${ACTION_COLUMNS}`;

export type NewAction = Pick<Action, "id" | "verb" | "filter" | "title" | "askedBy" | "perMinute" | "expected">;

/** Jobs that are made after it are none of its business: their ids are later than its own. */
export async function createAction(store: Store, action: NewAction): Promise<Action> {
  const { id, verb, filter, title, askedBy, perMinute, expected } = action;
  const values = [id, verb, JSON.stringify(filter), title, askedBy, perMinute, expected];
  return (await store.query<Action>(CREATE, values)).rows[0]!;
}
