// The history's partitions: one per UTC day, made days ahead, so that finishing a job never waits for one. Attaching
// takes a weaker lock than creating in place; a day that is there already is left alone.
import { codeOf } from "../../db/retryable.ts";
import { quoteSchema } from "../../shared/quote-schema.ts";
import { routine, sql, type Store } from "../sql.ts";

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

/** The schema's name is asked of the catalogue: as text it could hold any quote. */
const HERE = `(select tableoid from :schema.migrations limit 1) m join pg_class c on c.oid = m.tableoid
    join pg_namespace n on n.oid = c.relnamespace, (select 'job_history_' || to_char($1, 'YYYYMMDD') as name) d`;

// As the owner: a role that may create nothing must find a place for what it finishes, too. Anybody may ask, so the day
// is bounded.
const MAKE = routine({
  name: "make_partition",
  takes: ["date"],
  gives: "void",
  asOwner: true,
  body: `
if abs($1 - (:schema.clock() at time zone 'UTC')::date) > 31 then raise exception 'not a day for a partition: %', $1; end if;
execute (select format('create table if not exists %1$I.%2$I (like %1$I.job_history including defaults)', n.nspname, d.name)
  from ${HERE});
execute (select format('alter table %1$I.job_history attach partition %1$I.%2$I for values from (%3$L) to (%4$L)',
    n.nspname, d.name, to_char($1, 'YYYY-MM-DD 00:00:00+00'), to_char($1 + 1, 'YYYY-MM-DD 00:00:00+00'))
  from ${HERE})`,
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
      await tx.query(MAKE, [day]);
      made.push(`job_history_${day.replaceAll("-", "")}`);
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
