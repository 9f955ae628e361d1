// What a job's runs have finished, for the runs after them. Every write happens inside a fenced transaction.
import { sql, type Store } from "../sql.ts";

export type NoteSort = "step" | "chunks" | "checkpoint" | "generation";

const READ = sql`
select value from :schema.job_notes where job_id = $1::uuid and sort = $2 and name = $3`;

const WRITE = sql`
insert into :schema.job_notes (job_id, sort, name, value, written_at)
values ($1::uuid, $2, $3, $4::text::jsonb, :schema.clock())
on conflict (job_id, sort, name) do update set value = excluded.value, written_at = excluded.written_at`;

const SAVED_KEYS = sql`
select key from :schema.job_saved_items where job_id = $1::uuid and name = $2`;

const SAVE_KEYS = sql`
insert into :schema.job_saved_items (job_id, name, key)
select $1::uuid, $2, key from unnest($3::text[]) as key on conflict do nothing`;

const CLEAR_KEYS = sql`
delete from :schema.job_saved_items where job_id = $1::uuid and name = $2`;

export async function readNote<Value>(
  store: Store,
  jobId: string,
  sort: NoteSort,
  name: string,
): Promise<{ value: Value } | undefined> {
  return (await store.query<{ value: Value }>(READ, [jobId, sort, name])).rows[0];
}

/** `value` is JSON text. */
export async function writeNote(
  store: Store,
  jobId: string,
  sort: NoteSort,
  name: string,
  value: string,
): Promise<void> {
  await store.query(WRITE, [jobId, sort, name, value]);
}

export async function savedKeys(store: Store, jobId: string, name: string): Promise<Set<string>> {
  const { rows } = await store.query<{ key: string }>(SAVED_KEYS, [jobId, name]);
  return new Set(rows.map((row) => row.key));
}

export async function saveKeys(store: Store, jobId: string, name: string, keys: readonly string[]): Promise<void> {
  await store.query(SAVE_KEYS, [jobId, name, keys]);
}

export async function clearKeys(store: Store, jobId: string, name: string): Promise<void> {
  await store.query(CLEAR_KEYS, [jobId, name]);
}
