// Adds what failed to the figures of its error. Each process adds what it saw itself, every few seconds.
import type { TalliedError } from "../../metrics/error-tally.ts";
import { sql, type Store } from "../sql.ts";

const ADD = sql`
with e as materialized (
  select * from jsonb_to_recordset($1::text::jsonb) as e (kind text, fingerprint text, queue text, name text, message text,
    "jobId" uuid, retries bigint, deaths bigint)
),
counted as (
  insert into :schema.error_counts as c (kind, fingerprint, at, retries, deaths)
  select kind, fingerprint, date_bin('10 minutes', :schema.clock(), timestamptz 'epoch'), retries, deaths from e
  order by kind collate "C", fingerprint collate "C"
  on conflict (kind, fingerprint, at) do update set retries = c.retries + excluded.retries,
    deaths = c.deaths + excluded.deaths
)
insert into :schema.errors as x (kind, fingerprint, queue, name, message, last_job_id, first_seen_at, last_seen_at)
select kind, fingerprint, queue, name, message, "jobId", :schema.clock(), :schema.clock() from e
order by kind collate "C", fingerprint collate "C"
on conflict (kind, fingerprint) do update set queue = excluded.queue, name = excluded.name, message = excluded.message,
  last_job_id = excluded.last_job_id, last_seen_at = excluded.last_seen_at`;

export async function addErrorCounts(store: Store, counts: readonly TalliedError[]): Promise<void> {
  if (counts.length > 0) await store.query(ADD, [JSON.stringify(counts)]);
}

const TRIM_COUNTS = sql`
delete from :schema.error_counts where ctid = any(array(
  select ctid from :schema.error_counts where at < :schema.clock() - interval '8 days' order by at limit $1))`;

const TRIM_ERRORS = sql`
delete from :schema.errors where ctid = any(array(
  select ctid from :schema.errors where last_seen_at < :schema.clock() - interval '8 days' order by last_seen_at limit $1))`;

export async function trimErrors(store: Store, limit: number): Promise<number> {
  const counts = (await store.query(TRIM_COUNTS, [limit])).rowCount;
  return Math.max(counts, (await store.query(TRIM_ERRORS, [limit])).rowCount);
}
