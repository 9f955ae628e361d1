// How far an action is. A step that another process did meanwhile is not counted twice: it is noted only where the action
// still stands where the step began.
import { asMillis, sql, type Store } from "../sql.ts";
import { type Action, ACTION_COLUMNS } from "./rows.ts";

const OPEN = sql`
select ${ACTION_COLUMNS}, below, ${asMillis(":schema.clock() - created_at")}::float8 as "ageMs"
from :schema.actions where state = 'running' order by id limit 100`;

export interface OpenAction extends Action {
  below: string;
  ageMs: number;
}

export async function openActions(store: Store): Promise<OpenAction[]> {
  return (await store.query<OpenAction>(OPEN)).rows;
}

const ADVANCE = sql`
update :schema.actions set below = coalesce($3::uuid, below), done = done + $4, skipped = skipped + $5,
  state = case when $3::uuid is null then 'done' else state end,
  finished_at = case when $3::uuid is null then :schema.clock() end
where id = $1::uuid and state = 'running' and below = $2::uuid returning 1`;

export interface Step {
  id: string;
  from: string;
  /** null: everything was looked at. */
  to: string | null;
  done: number;
  skipped: number;
}

/** False: it was cancelled, or another process did this step. */
export async function advanceAction(store: Store, { id, from, to, done, skipped }: Step): Promise<boolean> {
  return (await store.query(ADVANCE, [id, from, to, done, skipped])).rowCount === 1;
}

const END = sql`
update :schema.actions set state = $2, error = $3, finished_at = :schema.clock()
where id = $1::uuid and state = 'running' returning 1`;

export async function endAction(
  store: Store,
  id: string,
  state: "cancelled" | "failed",
  error: string | null,
): Promise<boolean> {
  return (await store.query(END, [id, state, error])).rowCount === 1;
}

const TRIM = sql`
delete from :schema.actions where id = any(array(
  select id from :schema.actions where state <> 'running' and created_at < :schema.clock() - interval '90 days'
  order by id limit $1))`;

export async function trimActions(store: Store, limit: number): Promise<number> {
  return (await store.query(TRIM, [limit])).rowCount;
}
