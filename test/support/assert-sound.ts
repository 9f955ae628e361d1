// What must hold in a schema at any moment, whatever was killed, raced or retried before. Each rule is a query for
// what breaks it; assertSound() throws with every rule that found something, and the first rows it found.
import type { Db } from "#src/db/db.js";
import { openPostgres } from "#src/db/postgres.js";
import { quoteSchema } from "#src/shared/quote-schema.js";

export interface SoundOptions {
  /** Nobody works any more, and nothing is left running. A lease of nothing may be left: it runs out by itself. */
  idle?: boolean;
}

/** How a batch stands. */
const LATEST = `cross join lateral (
      select l.* from :schema.batch_log l where l.batch_id = b.id order by l.n desc limit 1) l`;

const RULES: Record<string, string> = {
  "a job is live or in the history, never both": `
    select j.id, j.state, h.state as history_state from :schema.jobs j join :schema.job_history h using (id)`,

  "a job is finished once": `
    select id, count(*) from :schema.job_history group by id having count(*) > 1`,

  "the history holds finished jobs only, and says when": `
    select id, state, finished_at from :schema.job_history
    where state not in ('done', 'cancelled', 'dead') or finished_at is null`,

  "what is done was started": `
    select id, attempt, claim_count from :schema.job_history
    where state = 'done' and (started_at is null or token is null or claim_count < 1)`,

  "a running job has a token, a start and an attempt": `
    select id, token, started_at, attempt, claim_count from :schema.jobs
    where state = 'running' and (token is null or started_at is null or attempt < 1 or claim_count < 1)`,

  "a running job is listed by exactly one lease of its token": `
    select j.id, j.token, count(l.token) as leases from :schema.jobs j
    left join :schema.leases l on l.token = j.token and j.id = any(l.job_ids)
    where j.state = 'running' group by j.id, j.token having count(l.token) <> 1`,

  "a running job is held by nothing, or runs as a suspect": `
    select id, hold from :schema.jobs where state = 'running' and hold not in (0, 2)`,

  "a lease lists jobs, each once, and asks to cancel only those": `
    select token, job_ids, cancel_ids from :schema.leases
    where cardinality(job_ids) = 0 or not cancel_ids <@ job_ids
      or cardinality(job_ids) <> (select count(distinct id) from unnest(job_ids) as u (id))`,

  "what a light lease names waits in its lane and is plain, or is gone": `
    select l.token, j.id, j.state, j.hold, j.group_key, j.coalesce_key from :schema.leases l
    cross join lateral unnest(l.job_ids) as u (id) join :schema.jobs j on j.id = u.id
    where l.light and (j.state <> 'pending' or j.hold <> 0 or j.group_key is not null or j.coalesce_key is not null
      or j.kind <> l.kind or j.rank <> l.rank)`,

  "a job is under one lease at most": `
    select u.id, count(*) from :schema.leases l cross join lateral unnest(l.job_ids) as u (id)
    join :schema.jobs j on j.id = u.id and (l.light or (j.state = 'running' and j.token = l.token))
    group by u.id having count(*) > 1`,

  "a suspect that has the process to itself is alone under its lease": `
    select token, job_ids from :schema.leases where alone and cardinality(job_ids) <> 1`,

  "a light lease says which lane it is of, when it was taken, and how far it goes": `
    select token, kind, rank, claimed_at, last_run_at, last_id from :schema.leases
    where light and (kind is null or rank is null or claimed_at is null or last_run_at is null or last_id is null)`,

  "what has ended is not among the live": `
    select id, state from :schema.jobs where state not in ('pending', 'running', 'dead')`,

  "dead is held as dead, and nothing else is": `
    select id, state, hold from :schema.jobs where (state = 'dead') <> (hold = 3)`,

  "only known holds": `
    select id, hold from :schema.jobs where hold not between 0 and 7`,

  "attempts stay within the budget": `
    select id, state, attempt, max_attempts, claim_count from :schema.jobs
    where attempt < 0 or attempt > max_attempts or claim_count < attempt
    union all
    select id, state, attempt, max_attempts, claim_count from :schema.job_history
    where attempt < 0 or attempt > max_attempts or claim_count < attempt`,

  "crashes are counted up to the limit": `
    select id, crash_count from :schema.jobs where crash_count not between 0 and 3`,

  "a cancel waits only on what runs or is being ended": `
    select id, state, hold from :schema.jobs
    where cancel_requested_at is not null and not (state = 'running' or hold = 4)`,

  "only members of a group wait behind a head": `
    select id, group_key from :schema.jobs where hold = 1 and (group_key is null or state <> 'pending')`,

  "every group with open members has its row": `
    select distinct j.group_key from :schema.jobs j
    where j.group_key is not null and j.state <> 'dead'
      and not exists (select 1 from :schema.job_groups g where g.name = j.group_key)`,

  "the head of a group is its open member that came first, and is not held back": `
    select g.name, g.head, f.id as first, f.hold from :schema.job_groups g
    left join lateral (
      select j.id, j.hold from :schema.jobs j
      where j.group_key = g.name and j.state <> 'dead' order by j.group_seq limit 1
    ) f on true
    where g.head is distinct from f.id or f.hold is distinct from nullif(f.hold, 1)`,

  "everybody else in a group is held back": `
    select j.id, j.group_key, j.state, j.hold from :schema.jobs j
    join :schema.job_groups g on g.name = j.group_key
    where j.state <> 'dead' and j.id <> g.head and j.hold <> 1`,

  "places in a group are given once, and up to the tail": `
    select j.group_key, j.group_seq, count(*) from :schema.jobs j
    left join :schema.job_groups g on g.name = j.group_key
    where j.group_key is not null and j.state <> 'dead'
    group by j.group_key, j.group_seq, g.tail
    having count(*) > 1 or j.group_seq is null or j.group_seq > g.tail`,

  "the ledger knows the key of every live and every dead job": `
    select j.id, j.kind, j.key from :schema.jobs j
    where j.key is not null and not exists (
      select 1 from :schema.job_keys k where k.kind = j.kind and k.key = j.key and k.job_id = j.id)`,

  "one key is one job: a key of the ledger has one live job at most": `
    select kind, key, count(*) from :schema.jobs where key is not null group by kind, key having count(*) > 1`,

  "one open job per coalesce key": `
    select kind, coalesce_key, count(*) from :schema.jobs
    where coalesce_key is not null and state <> 'dead' group by kind, coalesce_key having count(*) > 1`,

  "every chunk belongs to a parcel or to a draft": `
    select c.parcel_id, count(*) from :schema.parcel_chunks c
    where not exists (select 1 from :schema.parcels p where p.id = c.parcel_id and p.removed_at is null)
      and not exists (select 1 from :schema.parcel_drafts d where d.id = c.parcel_id)
    group by c.parcel_id`,

  "content is delivered once: no parcel is a draft": `
    select p.id from :schema.parcels p join :schema.parcel_drafts d on d.id = p.id`,

  "a recipient's acks are counted once each": `
    select i.recipient, i.acked_count, count(p.id) from :schema.inboxes i
    join :schema.parcels p on p.recipient = i.recipient and p.acked_at is not null and p.expired_at is null
    group by i.recipient, i.acked_count having count(p.id) > i.acked_count`,

  "only a coalescing job can be asked to run again": `
    select id, state from :schema.jobs where rerun is not null and coalesce_key is null`,

  "a failed attempt belongs to a run that happened": `
    select a.job_id, a.claim_count, j.claim_count as claims from :schema.attempts a
    join :schema.jobs j on j.id = a.job_id where a.claim_count > j.claim_count or a.claim_count < 1`,

  "a failed attempt says why, and when": `
    select job_id, claim_count, outcome from :schema.attempts where failed_at is null or error is null`,

  "priority stays in its range": `
    select id, rank from :schema.jobs where rank not between -100 and 100`,

  "only items of batches are parked, and nothing that is parked runs": `
    select id, state, batch_id from :schema.jobs where hold = 7 and (batch_id is null or state <> 'pending')`,

  "the job of an item belongs to an item of a batch that is not done, and is never dead": `
    select j.id, j.batch_id, j.batch_seq, j.state, b.state as batch_state from :schema.jobs j
    left join :schema.batches b on b.id = j.batch_id
    left join :schema.batch_items i on i.batch_id = j.batch_id and i.seq = j.batch_seq
    where j.batch_id is not null
      and (b.id is null or i.seq is null or b.state = 'done' or b.finished_at is not null or j.state = 'dead')`,

  "an item has one job at most, and none when it has come to something": `
    select j.batch_id, j.batch_seq, count(*) from :schema.jobs j
    left join :schema.batch_outcomes o on o.batch_id = j.batch_id and o.seq = j.batch_seq
    where j.batch_id is not null group by j.batch_id, j.batch_seq having count(*) > 1 or count(o.seq) > 0`,

  "slots are counted, and never more than the batch's concurrency": `
    select b.id, b.concurrency, l.admitted, l.parked, j.slots, j.parked as parked_jobs from :schema.batches b
    ${LATEST}
    cross join lateral (
      select count(*) filter (where j.hold <> 7) as slots, count(*) filter (where j.hold = 7) as parked
      from :schema.jobs j where j.batch_id = b.id
    ) j
    where l.admitted <> j.slots or l.parked <> j.parked or j.slots > b.concurrency`,

  "the counters of a batch are what its items came to": `
    select b.id, b.state, l.ended, l.ended_total, l.handed, c.ended as counted, c.total, c.handed as handed_items, i.items
    from :schema.batches b
    ${LATEST}
    cross join lateral (select count(*) as items from :schema.batch_items i where i.batch_id = b.id) i
    cross join lateral (
      select coalesce(jsonb_object_agg(outcome, count) filter (where outcome is not null), '{}') as ended,
        coalesce(sum(count) filter (where outcome is not null), 0) as total,
        coalesce(sum(count) filter (where outcome is null), 0) as handed
      from (
        select outcome, sum(count) as count from (
          select o.outcome, count(*) as count from :schema.batch_outcomes o where o.batch_id = b.id group by o.outcome
          union all
          -- What never had a slot when its batch was cancelled has no row.
          select 'cancelled', i.items - (select count(*) from :schema.batch_outcomes o where o.batch_id = b.id)
            - (select count(*) from :schema.jobs j where j.batch_id = b.id)
          where b.state = 'cancelled'
        ) o where o.count > 0 group by outcome
      ) o
    ) c
    where b.purged_at is null and (l.added <> i.items or l.ended <> c.ended or l.ended_total <> c.total or l.handed <> c.handed)`,

  "a batch is done when it is closed and all its items have come to something, and not before": `
    select b.id, b.state, b.closed_at, b.finished_at, b.retry_n, l.added, l.ended_total from :schema.batches b
    ${LATEST}
    where (b.closed_at is not null and l.added = l.ended_total and b.retry_n is null)
        <> (b.finished_at is not null)
      or (b.state = 'done' and (b.total is not null and l.added <> b.total))`,

  "a batch that goes on uses its slots while something waits": `
    select b.id, b.state, b.concurrency, l.* from :schema.batches b
    ${LATEST}
    where b.state in ('queued', 'running') and l.admitted < b.concurrency
      and l.added - l.taken + l.returned - l.retaken + l.parked > 0`,

  "what waits again is counted from one, without gaps": `
    select b.id, l.returned, r.count, r.most from :schema.batches b
    ${LATEST}
    cross join lateral (
      select count(*) as count, coalesce(max(n), 0) as most from :schema.batch_returns r where r.batch_id = b.id
    ) r
    where b.purged_at is null and (r.count <> l.returned or r.most <> l.returned)`,

  "errors that look alike are counted as often as there are errors": `
    select b.id, l.ended ->> 'error' as errors, e.count from :schema.batches b
    ${LATEST}
    cross join lateral (select coalesce(sum(count), 0) as count from :schema.batch_errors e where e.batch_id = b.id) e
    where b.purged_at is null and e.count > coalesce((l.ended ->> 'error')::bigint, 0)`,
};

const IDLE_RULES: Record<string, string> = {
  "nothing runs": `select id, kind, token from :schema.jobs where state = 'running'
    union all
    select j.id, j.kind, l.token from :schema.leases l cross join lateral unnest(l.job_ids) as u (id)
    join :schema.jobs j on j.id = u.id where l.light`,
  "nothing waits to be buried or cancelled": `select id, kind, hold from :schema.jobs where hold = 4`,
};

/** A function of the database that names the rules that are broken: its plans are kept, for whoever asks very often. */
export const soundFunction = (schema: string, name: string): string => {
  const checks = Object.entries(RULES).map(
    ([rule, query]) =>
      `if exists (${query.replaceAll(":schema", () => quoteSchema(schema))}) then return next '${rule.replaceAll("'", "''")}'; end if;`,
  );
  return `create or replace function ${name}() returns setof text language plpgsql as $sound$ begin
${checks.join("\n")}
end $sound$`;
};

const SHOWN = 5;

export async function assertSound(
  database: string | Db,
  schema = "holdfast",
  { idle = false }: SoundOptions = {},
): Promise<void> {
  if (typeof database === "string") {
    const db = await openPostgres({ url: database });
    try {
      return await assertSound(db, schema, { idle });
    } finally {
      await db.close();
    }
  }
  const quoted = quoteSchema(schema);
  const problems: string[] = [];
  for (const [rule, query] of Object.entries(idle ? { ...RULES, ...IDLE_RULES } : RULES)) {
    const { rows } = await database.query(`${query.replaceAll(":schema", () => quoted)} limit ${SHOWN}`);
    if (rows.length > 0) problems.push(`${rule}\n${rows.map((row) => `    ${JSON.stringify(row)}`).join("\n")}`);
  }
  if (problems.length > 0) throw new Error(`The schema ${quoted} is not sound:\n- ${problems.join("\n- ")}`);
}
