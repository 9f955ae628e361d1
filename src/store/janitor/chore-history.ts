// What the janitor did: one row for each run that did something or failed.
import { routine, sql, type Store } from "../sql.ts";

const RECORD = sql`
insert into :schema.chore_runs (chore, started_at, took_ms, rows, error, run_by)
values ($1, :schema.clock() - $2::integer * interval '1 millisecond', $2::integer, $3::text::jsonb, $4, $5)`;

const LIST = sql`
select id, chore, started_at as "startedAt", took_ms as "tookMs", rows, error, run_by as "by"
from :schema.chore_runs
where ($1::text is null or chore = $1) and ($2::bigint is null or id < $2::bigint)
order by id desc limit $3`;

/** Runs are in the order of time: those to go are the first by id. */
const TRIM = routine({
  name: "trim_chore_runs",
  takes: ["integer", "bigint"],
  gives: "count",
  body: `delete from :schema.chore_runs where id = any(array(
  select old.id from (select id, started_at from :schema.chore_runs order by id limit $1) old
  where old.started_at < :schema.clock() - $2 * interval '1 millisecond'))`,
});

/** One run of a chore, as it is kept. */
export interface ChoreRun {
  id: string;
  chore: string;
  startedAt: Date;
  tookMs: number;
  /** How many of what. */
  rows: Record<string, number>;
  error: string | null;
  /** Which process. */
  by: string;
}

export type NewChoreRun = Omit<ChoreRun, "id" | "startedAt">;

export async function recordRun(store: Store, run: NewChoreRun): Promise<void> {
  await store.query(RECORD, [run.chore, Math.round(run.tookMs), JSON.stringify(run.rows), run.error, run.by]);
}

export interface RunFilter {
  chore: string | null;
  /** Older than this one. */
  before: string | null;
  limit: number;
}

/** Newest first. */
export async function listRuns(store: Store, { chore, before, limit }: RunFilter): Promise<ChoreRun[]> {
  return (await store.query<ChoreRun>(LIST, [chore, before, limit])).rows;
}

export async function trimRuns(store: Store, limit: number, olderThanMs: number): Promise<number> {
  return Number((await store.query<{ count: string }>(TRIM, [limit, olderThanMs])).rows[0]!.count);
}
