// What a job's runs have finished, for people.
import { sql, type Store } from "../sql.ts";
import type { NoteSort } from "./notes.ts";

const LIST = sql`
select sort, name, left(value::text, 10000) as text, octet_length(value::text) as size, written_at as "writtenAt"
from :schema.job_notes where job_id = $1::uuid order by written_at desc limit 200`;

export interface Note {
  sort: NoteSort;
  name: string;
  /** JSON; the first 10,000 characters of it. */
  text: string;
  size: number;
  writtenAt: Date;
}

export async function listNotes(store: Store, jobId: string): Promise<Note[]> {
  return (await store.query<Note>(LIST, [jobId])).rows;
}
