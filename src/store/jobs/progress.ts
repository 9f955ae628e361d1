// Stores how far running jobs are. Best effort and fenced; a row that is locked right now keeps what it had.
import { routine, type Store } from "../sql.ts";

export interface ProgressRow {
  id: string;
  token: string;
  done: number;
  total: number | null;
  note: string | null;
}

const PROGRESS = routine({
  name: "progress",
  takes: ["text"],
  gives: "id uuid",
  body: `with p as materialized (
  select * from jsonb_to_recordset($1::jsonb) as p (id uuid, token bigint, done double precision,
    total double precision, note text)
),
mine as materialized (
  select j.ctid, p.* from p join :schema.jobs j on j.id = p.id
  where j.token = p.token and j.state = 'running' order by j.id for update of j skip locked
)
update :schema.jobs j set progress = jsonb_build_object(
  'done', m.done, 'total', m.total, 'note', m.note, 'at', to_char(:schema.clock() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))
from mine m where j.id = m.id and j.token = m.token
returning j.id`,
});

/** The ids whose progress was taken. */
export async function progressIfRunning(store: Store, rows: readonly ProgressRow[]): Promise<Set<string>> {
  const taken = await store.query<{ id: string }>(PROGRESS, [JSON.stringify(rows)]);
  return new Set(taken.rows.map((row) => row.id));
}
