// What the database knows after a run, for the judge. It is written down by triggers and by handlers' own inserts, not by
// the product: `audit` has every change of a job's owner in the order in which it happened (its numbers are drawn under
// the locks of the rows they are about), `exec_log` every start and end of a handler whether or not it was accepted, and
// `effects` what handlers did inside fenced transactions. None of them has a constraint that could hide a double.
import type { Queryable } from "#src/db/db.js";
import { quoteSchema } from "#src/shared/quote-schema.js";

export interface JobFact {
  id: string;
  n: number;
  kind: string;
  /** done, dead, cancelled; or pending, running. */
  state: string;
  attempt: number;
  maxAttempts: number;
  claimCount: number;
  crashCount: number;
  token: string | null;
  key: string | null;
  /** Its coalescing key. */
  coalesce: string | null;
  /** It has the other one of the payloads that its key was asked with. */
  other: boolean;
  /** The token that its handler returned, if it returned one. */
  resultToken: string | null;
  /** Why it is dead. */
  reason: string | null;
  /** The batch or the job at whose end it was enqueued. */
  follows: string | null;
}

export interface AuditFact {
  seq: number;
  xact: string;
  job: string;
  what: string;
  token: string | null;
  claimCount: number | null;
  /** When it was, by the machine's clock in milliseconds: of what somebody must have asked for, or that has to have a reason. */
  at?: number | null;
}

export interface ExecFact {
  seq: number;
  job: string;
  token: string;
  /** `snooze`: the handler puts itself off. */
  what: "start" | "end" | "chunk" | "snooze";
  item: number | null;
  /** Of a row that came late: when its handler had it written, and when it was, by the machine's clock in milliseconds. */
  lateFrom?: number | null;
  lateAt?: number | null;
}

export interface EffectFact {
  seq: number;
  job: string;
  token: string;
  what: "complete" | "step" | "chunks";
  item: number;
}

export interface Facts {
  jobs: JobFact[];
  audit: AuditFact[];
  execs: ExecFact[];
  effects: EffectFact[];
  /** Failed attempts that were charged, per job. */
  charged: Map<string, number>;
  /** Of these, the ones whose handler failed because a statement of its own did not get through. Nothing else excuses them. */
  troubled: Map<string, number>;
  /** Which claims were charged. */
  charges: { job: string; claimCount: number }[];
  /** Which process had a claim that was given back or failed: token → the name of its worker. */
  holders: Map<string, string>;
  /** The ledger: key → job. */
  keys: Map<string, string>;
  /** Finished jobs that are gone, with their numbers, and those of them that went before their time. */
  purged: Map<string, number>;
  purgedEarly: string[];
  /** How many jobs follow one because it died. */
  followers: Map<string, number>;
  batches: BatchFact[];
  parcels: ParcelFact[];
}

export interface ParcelFact {
  key: string;
  /** As the parcel says, and of the bytes that are really there. */
  sha256: string;
  contentSha256: string | null;
  acked: boolean;
}

export interface BatchFact {
  id: string;
  key: string | null;
  state: string;
  total: number;
  ended: number;
  completions: number;
  /** Rows of items that came to something, how many of these were saved, and how many effects there are twice. */
  outcomes: number;
  saved: number;
  doubles: number;
  /** Attempts of items that were charged, and those of them whose handler's own statement did not get through. */
  charged: number;
  troubled: number;
  /** Items that were saved without their effect, and effects of items that were not saved. */
  unmatched: number;
  follow: number;
}

/** The kind whose jobs are purged during a storm, and when: long after the last time that its enqueue can be sent again. */
export const BRIEF = "storm.brief";
export const BRIEF_MS = 15_000;

/** The kind whose jobs coalesce: `n` of its payload is the newest that its row knows. */
export const NEWEST = "storm.newest";
/** The kinds that follow a batch, and a death. */
export const AFTER_BATCH = "storm.after";
export const AFTER_DEATH = "storm.after-death";

/** Call it on a schema that exists and is empty. */
export const instrumentation = (schema: string): string => {
  const s = quoteSchema(schema);
  return `
create schema if not exists proof;
create sequence if not exists proof.seq;
create table if not exists proof.audit (
  seq bigint not null default nextval('proof.seq'), at timestamptz not null default clock_timestamp(),
  xact text not null default pg_current_xact_id()::text,
  job uuid, what text, token text, claim_count integer, n integer);
create table if not exists proof.holders (token text, worker text);
create table if not exists proof.charges (job uuid, claim_count integer, code text);
create table if not exists proof.items (job uuid, batch uuid);
create table if not exists proof.exec_log (
  seq bigint not null default nextval('proof.seq'), at timestamptz not null default clock_timestamp(),
  job uuid, token text, worker text, what text, item integer, noted double precision);
create table if not exists proof.effects (
  seq bigint not null default nextval('proof.seq'), job uuid, token text, what text, item integer);
create table if not exists proof.batch_effects (batch uuid, item bigint);

create or replace function proof.on_job() returns trigger language plpgsql set search_path = pg_catalog as $proof$
begin
  -- Items of batches end in other tables, and are judged by those.
  if coalesce(new.batch_id, old.batch_id) is not null then
    if tg_op = 'INSERT' then
      insert into proof.items (job, batch) values (new.id, new.batch_id);
    end if;
    return null;
  elsif tg_op = 'INSERT' then
    insert into proof.audit (job, what, token, claim_count) values (new.id, 'accepted', null, new.claim_count);
  elsif tg_op = 'DELETE' then
    insert into proof.audit (job, what, token, claim_count)
    values (old.id, old.state || '>gone', old.token, old.claim_count);
  elsif old.state <> new.state or (new.state = 'running' and old.token is distinct from new.token) then
    insert into proof.audit (job, what, token, claim_count)
    values (new.id, old.state || '>' || new.state,
      case when new.state = 'running' then new.token else old.token end, new.claim_count);
  end if;
  return null;
end $proof$;
create or replace trigger proof_job after insert or update or delete on ${s}.jobs
  for each row execute function proof.on_job();

create or replace function proof.on_lease() returns trigger language plpgsql set search_path = pg_catalog as $proof$
begin
  if tg_op = 'INSERT' then
    insert into proof.holders (token, worker) select new.token, w.name from ${s}.workers w where w.id = new.worker_id;
  end if;
  if tg_op = 'INSERT' and new.light then
    insert into proof.audit (job, what, token) select id, 'light', new.token from unnest(new.job_ids) as u (id);
  elsif tg_op = 'DELETE' and old.light then
    insert into proof.audit (job, what, token) select id, 'light-end', old.token from unnest(old.job_ids) as u (id);
  end if;
  return null;
end $proof$;
create or replace trigger proof_lease after insert or delete on ${s}.leases
  for each row execute function proof.on_lease();

-- The product forgets what was charged to items, once they have ended.
create or replace function proof.on_attempt() returns trigger language plpgsql set search_path = pg_catalog as $proof$
begin
  insert into proof.charges (job, claim_count, code) values (new.job_id, new.claim_count, new.error ->> 'code');
  return null;
end $proof$;
create or replace trigger proof_attempt after insert on ${s}.attempts
  for each row execute function proof.on_attempt();

create or replace function proof.on_history() returns trigger language plpgsql set search_path = pg_catalog as $proof$
begin
  if tg_op = 'INSERT' then
    insert into proof.audit (job, what, token, claim_count)
    values (new.id, 'ended:' || new.state, new.token, new.claim_count);
  else
    -- By what the test knows about the job, and not by what the product wrote down: only those of one kind may go at all.
    insert into proof.audit (job, what, n) values (old.id,
      case when old.kind = '${BRIEF}' and old.state = 'done'
          and old.finished_at + interval '${BRIEF_MS} milliseconds' <= clock_timestamp()
        then 'purged' else 'purged-early' end, (old.payload ->> 'n')::integer);
  end if;
  return null;
end $proof$;
create or replace trigger proof_history after insert or delete on ${s}.job_history
  for each row execute function proof.on_history();
`;
};

/**
 * Codes of errors that say that the database did not answer: ours, and SQLSTATEs of connections, shutdowns, resources and
 * read-only transactions. A run that was told to stop (ABORT_ERR) or had lost its lease must not be charged, and is not among them.
 */
const TROUBLE = "^(HOLDFAST_DATABASE_UNAVAILABLE|08...|53...|57P..|25006|ECONN.*|EPIPE|ETIMEDOUT)$";

/** Shorter than any recovery of a crashed server. */
const LATE_MS = 50;
const millis = (time: string): string => `(extract(epoch from ${time}) * 1000)::double precision`;
const IS_LATE = `extract(epoch from at) * 1000 - noted > ${LATE_MS}`;

/** Everything away, for the next run on the same schema. */
export const FORGET =
  "truncate proof.audit, proof.exec_log, proof.effects, proof.batch_effects, proof.holders, proof.charges, proof.items";

/** `follow`: the kind that batches enqueue when they are done. */
export async function gatherFacts(db: Queryable, schema: string, follow = AFTER_BATCH): Promise<Facts> {
  const s = quoteSchema(schema);
  const rows = async <Row>(text: string, values: readonly unknown[] = []): Promise<Row[]> =>
    (await db.query<Row>(text, values)).rows;
  const follows = `case kind when $1 then payload #>> '{batch,id}' when $2 then payload #>> '{job,id}' end as follows`;
  const jobs = await rows<JobFact>(
    `select id, coalesce((payload ->> 'n')::integer, -1) as n, kind, state::text, attempt,
       max_attempts as "maxAttempts", claim_count as "claimCount", crash_count::integer as "crashCount",
       token::text, key, coalesce_key as coalesce, payload ? 'other' as other, null as "resultToken", last_error ->> 'reason' as reason, ${follows}
     from ${s}.jobs where batch_id is null
     union all
     select id, coalesce((payload ->> 'n')::integer, -1), kind, state::text, attempt, max_attempts, claim_count, 0,
       token::text, key, coalesce_key, payload ? 'other', result ->> 'token', last_error ->> 'reason', ${follows}
     from ${s}.job_history`,
    [follow, AFTER_DEATH],
  );
  const all = await rows<AuditFact & { n: number | null }>(
    `select seq::double precision as seq, xact, job, what, token, claim_count as "claimCount", n,
       case when what in ('running>pending', 'light-end', 'dead>pending', 'dead>gone') then ${millis("at")} end as at
     from proof.audit order by seq`,
  );
  const audit = all.flatMap(({ seq, xact, job, what, token, claimCount, at = null }) =>
    what.startsWith("purged") ? [] : [{ seq, xact, job, what, token, claimCount, at }],
  );
  const purges = all.filter((entry) => entry.what.startsWith("purged"));
  const execs = await rows<ExecFact>(
    `select seq::double precision as seq, job, token, what, item,
       case when ${IS_LATE} then noted end as "lateFrom", case when ${IS_LATE} then ${millis("at")} end as "lateAt"
     from proof.exec_log order by seq`,
  );
  const effects = await rows<EffectFact>(
    "select seq::double precision as seq, job, token, what, item from proof.effects order by seq",
  );
  const charged = await rows<{ job: string; count: number; troubled: number }>(
    `select job, count(*)::integer as count, count(*) filter (where code ~ $1)::integer as troubled
     from proof.charges where job not in (select job from proof.items) group by job`,
    [TROUBLE],
  );
  const charges = await rows<Facts["charges"][number]>(
    `select job, claim_count as "claimCount" from proof.charges
     where job not in (select job from proof.items) order by 1, 2`,
  );
  // What a handler says of itself goes before what the lease says, which is there also if no handler ever began.
  const holders = await rows<{ token: string; worker: string }>(
    `select distinct on (token) token, worker from (
       select token, worker, 1 as source from proof.exec_log union select token, worker, 2 from proof.holders) h
     where token in (select token from proof.audit where what in ('running>pending', 'running>dead', 'light-end'))
     order by token, source`,
  );
  const keys = await rows<{ key: string; job: string }>(`select key, job_id as job from ${s}.job_keys`);
  const batches = await rows<BatchFact>(
    `select b.id, b.key, b.state::text, coalesce(b.total, l.added)::integer as total, l.ended_total::integer as ended,
       b.completions::integer,
       (select count(*) from ${s}.batch_outcomes o where o.batch_id = b.id)::integer as outcomes,
       (select count(*) from ${s}.batch_outcomes o where o.batch_id = b.id and o.outcome = 'saved')::integer as saved,
       a.charged, a.troubled,
       (select count(*) - count(distinct item) from proof.batch_effects e where e.batch = b.id)::integer as doubles,
       (select count(*) from (
          select o.seq from ${s}.batch_outcomes o where o.batch_id = b.id and o.outcome = 'saved') o
        full join (select distinct item from proof.batch_effects e where e.batch = b.id) e on e.item = o.seq
        where o.seq is null or e.item is null)::integer as unmatched,
       (select count(*) from (
          select payload from ${s}.jobs where kind = $1 union all select payload from ${s}.job_history where kind = $1
        ) f where f.payload #>> '{batch,id}' = b.id::text)::integer as follow
     from ${s}.batches b cross join lateral (
       select * from ${s}.batch_log l where l.batch_id = b.id order by l.n desc limit 1) l
     cross join lateral (
       select count(*)::integer as charged, count(*) filter (where c.code ~ $2)::integer as troubled
       from proof.items i join proof.charges c on c.job = i.job where i.batch = b.id) a`,
    [follow, TROUBLE],
  );
  const followers = await rows<{ job: string; count: number }>(
    `select payload #>> '{job,id}' as job, count(*)::integer as count from (
       select payload from ${s}.jobs where kind = $1 union all select payload from ${s}.job_history where kind = $1
     ) f group by 1`,
    [AFTER_DEATH],
  );
  const parcels = await rows<ParcelFact>(
    `select p.key, encode(p.sha256, 'hex') as sha256, p.acked_at is not null as acked,
       (select encode(sha256(string_agg(c.bytes, ''::bytea order by c.n)), 'hex') from ${s}.parcel_chunks c
        where c.parcel_id = p.id) as "contentSha256"
     from ${s}.parcels p`,
  );
  return {
    jobs,
    audit,
    execs,
    effects,
    charged: new Map(charged.map(({ job, count }) => [job, count])),
    troubled: new Map(charged.map(({ job, troubled }) => [job, troubled])),
    charges,
    holders: new Map(holders.map(({ token, worker }) => [token, worker])),
    keys: new Map(keys.map(({ key, job }) => [key, job])),
    purged: new Map(purges.map(({ job, n }) => [job, n ?? -1])),
    purgedEarly: purges.filter((entry) => entry.what === "purged-early").map((entry) => entry.job),
    followers: new Map(followers.map(({ job, count }) => [job, count])),
    batches,
    parcels,
  };
}
