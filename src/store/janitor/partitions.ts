// The history's partitions: one per UTC day, made days ahead, so that finishing a job never waits for one. Attaching
// takes a weaker lock than creating in place; a day that is there already is left alone.
import { codeOf } from "../../db/retryable.ts";
import { quoteSchema } from "../../shared/quote-schema.ts";
import { sql, type Statement, type Store } from "../sql.ts";

const DAYS_AHEAD = 4;

/** A row found no partition for its day: the process that makes them was away for days. */
export function isMissingPartition(error: unknown): boolean {
  return codeOf(error) === "23514";
}

const TODAY = sql`select to_char(:schema.clock() at time zone 'UTC', 'YYYY-MM-DD') as day`;

const LOCK = sql`select pg_advisory_xact_lock(hashtextextended('holdfast partitions ' || $1::text, 0))`;

const THERE = sql`
select c.relname as name from pg_inherits i join pg_class c on c.oid = i.inhrelid
where i.inhparent = $1::text::regclass`;

const statement = (text: string): Statement => ({
  textIn: (quotedSchema) => text.replaceAll(":schema", () => quotedSchema),
});

/** The history's name as text, for a cast to regclass: a schema's name may hold quotes of its own. */
export const historyName = (store: Store): string => `${quoteSchema(store.schema)}.job_history`;

function addDays(day: string, days: number): string {
  const date = new Date(`${day}T00:00:00Z`);
  date.setUTCDate(date.getUTCDate() + days);
  return date.toISOString().slice(0, 10);
}

/** Makes today's partition and those of the next days. Returns the names it made. */
export async function makePartitions(store: Store): Promise<string[]> {
  const missing = await missingDays(store);
  if (missing.length === 0) return [];
  return await store.transaction(async (tx) => {
    await tx.query(LOCK, [store.schema]);
    const made: string[] = [];
    for (const day of await missingDays(tx)) {
      const name = `job_history_${day.replaceAll("-", "")}`;
      await tx.query(
        statement(`create table if not exists :schema.${name} (like :schema.job_history including defaults)`),
      );
      await tx.query(
        statement(`alter table :schema.job_history attach partition :schema.${name}
          for values from ('${day} 00:00:00+00') to ('${addDays(day, 1)} 00:00:00+00')`),
      );
      made.push(name);
    }
    return made;
  });
}

async function missingDays(store: Store): Promise<string[]> {
  const { rows: today } = await store.query<{ day: string }>(TODAY);
  const { rows: there } = await store.query<{ name: string }>(THERE, [historyName(store)]);
  const names = new Set(there.map((row) => row.name));
  // Yesterday too: a settle's clock may be a moment behind ours.
  const days = Array.from({ length: DAYS_AHEAD + 2 }, (_, index) => addDays(today[0]!.day, index - 1));
  return days.filter((day) => !names.has(`job_history_${day.replaceAll("-", "")}`));
}
