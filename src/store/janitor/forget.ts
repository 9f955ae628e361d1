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

function forget(name: string, table: string, key: readonly [string, string][], gone: string): Routine {
  const columns = key.map(([column]) => column).join(", ");
  const from = key.map(([, type], index) => `$${index + 2}::text::${type}`).join(", ");
  return routine({
    name,
    takes: ["integer", ...key.map(() => "text")],
    gives: `forgotten bigint, seen bigint, ${key.map(([column]) => `"${column}" text`).join(", ")}`,
    body: `with page as materialized (
  select ctid, ${columns} from :schema.${table} where (${columns}) > (${from}) order by ${columns} limit $1
),
gone as (
  delete from :schema.${table} where ctid = any(array(select p.ctid from page p where ${gone})) returning 1
),
final as (select * from page order by ${key.map(([column]) => `${column} desc`).join(", ")} limit 1)
select (select count(*) from gone), (select count(*) from page),
  ${key.map(([column]) => `(select f.${column}::text from final f)`).join(", ")}`,
  });
}

const VERBS: Record<Remains, { verb: Routine; key: readonly string[]; first: readonly string[] }> = {
  notes: {
    verb: forget(
      "forget_notes",
      "job_notes",
      [
        ["job_id", "uuid"],
        ["sort", "text"],
        ["name", "text"],
      ],
      GONE,
    ),
    key: ["job_id", "sort", "name"],
    first: ["00000000-0000-0000-0000-000000000000", "", ""],
  },
  "saved items": {
    verb: forget(
      "forget_saved_items",
      "job_saved_items",
      [
        ["job_id", "uuid"],
        ["name", "text"],
        ["key", "text"],
      ],
      GONE,
    ),
    key: ["job_id", "name", "key"],
    first: ["00000000-0000-0000-0000-000000000000", "", ""],
  },
  attempts: {
    verb: forget(
      "forget_attempts",
      "attempts",
      [
        ["job_id", "uuid"],
        ["claim_count", "integer"],
      ],
      FORGOTTEN,
    ),
    key: ["job_id", "claim_count"],
    first: ["00000000-0000-0000-0000-000000000000", "0"],
  },
};

export async function forgetRemains(
  store: Store,
  what: Remains,
  limit: number,
  from: readonly string[] | undefined,
): Promise<Page> {
  const { verb, key, first } = VERBS[what];
  const { rows } = await store.query<{ forgotten: string; seen: string } & Record<string, string>>(verb, [
    limit,
    ...(from ?? first),
  ]);
  const found = rows[0]!;
  return {
    rows: Number(found.forgotten),
    next: Number(found.seen) < limit ? undefined : key.map((column) => found[column]!),
  };
}
