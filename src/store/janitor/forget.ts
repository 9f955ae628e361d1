// Removes what belongs to jobs that are gone: notes, saved items, failed attempts. One page of a table per call, in the
// order of its key, so that no statement reads more than its page, however many of the rows are still needed.
import { routine, type Routine, type Store } from "../sql.ts";

/** notes and saved items are for the runs of a job; attempts are readable as long as the job itself. */
export type Remains = "notes" | "saved items" | "attempts";

interface Page {
  rows: number;
  /** Where the next page begins; undefined at the end. */
  next: readonly string[] | undefined;
}

const GONE = `not exists (select 1 from :schema.jobs j where j.id = p.job_id)`;
const FORGOTTEN = `${GONE} and not exists (select 1 from :schema.job_history h where h.id = p.job_id)`;

interface Verb {
  statement: Routine;
  /** The columns of the table's key. */
  key: readonly string[];
  /** Before every key that there is. */
  first: readonly string[];
}

function forget(
  name: string,
  table: string,
  key: readonly [column: string, type: string, first: string][],
  gone: string,
): Verb {
  const names = key.map(([column]) => column);
  const columns = names.join(", ");
  const from = key.map(([, type], index) => `$${index + 2}::text::${type}`).join(", ");
  const statement = routine({
    name,
    takes: ["integer", ...key.map(() => "text")],
    gives: `forgotten bigint, seen bigint, ${names.map((column) => `"${column}" text`).join(", ")}`,
    body: `with page as materialized (
  select ctid, ${columns} from :schema.${table} where (${columns}) > (${from}) order by ${columns} limit $1
),
gone as (
  delete from :schema.${table} where ctid = any(array(select p.ctid from page p where ${gone})) returning 1
),
final as (select * from page order by ${names.map((column) => `${column} desc`).join(", ")} limit 1)
select (select count(*) from gone), (select count(*) from page),
  ${names.map((column) => `(select f.${column}::text from final f)`).join(", ")}`,
  });
  return { statement, key: names, first: key.map(([, , first]) => first) };
}

const JOB_ID: [string, string, string] = ["job_id", "uuid", "00000000-0000-0000-0000-000000000000"];

const VERBS: Record<Remains, Verb> = {
  notes: forget("forget_notes", "job_notes", [JOB_ID, ["sort", "text", ""], ["name", "text", ""]], GONE),
  "saved items": forget(
    "forget_saved_items",
    "job_saved_items",
    [JOB_ID, ["name", "text", ""], ["key", "text", ""]],
    GONE,
  ),
  attempts: forget("forget_attempts", "attempts", [JOB_ID, ["claim_count", "integer", "0"]], FORGOTTEN),
};

export async function forgetRemains(
  store: Store,
  what: Remains,
  limit: number,
  from: readonly string[] | undefined,
): Promise<Page> {
  const { statement, key, first } = VERBS[what];
  const { rows } = await store.query<{ forgotten: string; seen: string } & Record<string, string>>(statement, [
    limit,
    ...(from ?? first),
  ]);
  const found = rows[0]!;
  return {
    rows: Number(found.forgotten),
    next: Number(found.seen) < limit ? undefined : key.map((column) => found[column]!),
  };
}
