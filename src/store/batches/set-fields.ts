// Fields of the owner's own, with when and by whom each was written. Merged by the caller, under the batch's lock.
import { routine, sql, type Store } from "../sql.ts";
import { ADVANCED, advance, type Advanced, LOCK_BATCH } from "./advance.ts";

export interface StoredFields {
  fields: Record<string, unknown>;
  times: Record<string, { at: string; by: string }>;
  owner: string | null;
  now: Date;
}

const READ = sql`
select b.fields, b.field_times as times, b.owner, :schema.clock() as now from :schema.batches b
where b.id = $1::uuid and b.deleted_at is null for no key update`;

/** As part of a transaction, which holds the batch from here on. Undefined: there is no such batch. */
export async function lockFields(store: Store, id: string): Promise<StoredFields | undefined> {
  return (await store.query<StoredFields>(READ, [id])).rows[0];
}

const WRITE = routine({
  name: "set_batch_fields",
  takes: ["uuid", "jsonb", "jsonb", "text"],
  gives: ADVANCED,
  first: `
${LOCK_BATCH("$1")}
update :schema.batches b set fields = $2, field_times = $3 where b.id = $1;`,
  body: `select a.* from ${advance({ what: "fields", by: "$4" })} a`,
});

export async function writeFields(
  store: Store,
  id: string,
  { fields, times }: Pick<StoredFields, "fields" | "times">,
  by: string | null,
): Promise<Advanced> {
  const values = [id, JSON.stringify(fields), JSON.stringify(times), by];
  return (await store.query<Advanced>(WRITE, values)).rows[0]!;
}
