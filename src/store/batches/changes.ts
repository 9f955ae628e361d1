// The feed of changes, for clients that keep a copy. Whoever reads it first puts in order what has committed since: one
// reader at a time gives numbers, so that a change that commits late comes later, and is never behind what was read.
import type { BatchState } from "../../job/batch.ts";
import { routine, sql, type Store } from "../sql.ts";

const MOST_NEWS = 5_000;

// The lock first, in a statement of its own: what another reader put in order is seen.
const SEQUENCE = routine({
  name: "sequence_changes",
  takes: ["text"],
  gives: "count",
  settings: ["lock_timeout = '5s'", "enable_seqscan = on"],
  first: `perform pg_advisory_xact_lock(hashtextextended('holdfast feed ' || $1, 0));`,
  body: `with gone as (
  delete from :schema.batch_news w where w.ctid = any(array(select x.ctid from :schema.batch_news x limit ${MOST_NEWS}))
  returning w.batch_id, w.n, w.owner
)
insert into :schema.batch_feed (batch_id, n, owner, at)
select g.batch_id, g.n, g.owner, :schema.clock() from gone g order by g.batch_id, g.n`,
});

/** Everything that had committed when this was called has its number. */
export async function sequenceChanges(store: Store): Promise<number> {
  let count = 0;
  for (;;) {
    const { rows } = await store.query<{ count: string }>(SEQUENCE, [store.schema]);
    count += Number(rows[0]!.count);
    if (Number(rows[0]!.count) < MOST_NEWS) return count;
  }
}

const READ = sql`
select f.seq, f.batch_id as "batchId", f.n, f.owner, l.what, l.by, l.at, l.state, l.seqs, b.deleted_at is not null as deleted
from :schema.batch_feed f left join :schema.batch_log l on l.batch_id = f.batch_id and l.n = f.n
left join :schema.batches b on b.id = f.batch_id
where f.seq > $1 order by f.seq limit $2`;

const READ_OF_OWNER = sql`
select f.seq, f.batch_id as "batchId", f.n, f.owner, l.what, l.by, l.at, l.state, l.seqs, b.deleted_at is not null as deleted
from :schema.batch_feed f left join :schema.batch_log l on l.batch_id = f.batch_id and l.n = f.n
left join :schema.batches b on b.id = f.batch_id
where f.owner = $3 and f.seq > $1 order by f.seq limit $2`;

const ENDS = sql`select min(seq) as first, max(seq) as last from :schema.batch_feed`;

export interface ChangeRow {
  /** Its place in the feed. */
  seq: string;
  batchId: string;
  /** Its place in the batch's own log. */
  n: string;
  owner: string | null;
  what: string | null;
  by: string | null;
  at: Date | null;
  state: BatchState | null;
  /** Items that came to something, or wait again. */
  seqs: string[] | null;
  deleted: boolean;
}

export async function readChanges(
  store: Store,
  after: string,
  limit: number,
  owner: string | undefined,
): Promise<ChangeRow[]> {
  const { rows } =
    owner === undefined
      ? await store.query<ChangeRow>(READ, [after, limit])
      : await store.query<ChangeRow>(READ_OF_OWNER, [after, limit, owner]);
  return rows;
}

/** The oldest and the newest number that there is; null while there is none. */
export async function feedEnds(store: Store): Promise<{ first: string | null; last: string | null }> {
  return (await store.query<{ first: string | null; last: string | null }>(ENDS)).rows[0]!;
}
