-- Jobs: the live table, the leases, the history, the keys, the groups, the failed attempts, the workers.
--
-- `jobs` holds what is not finished, and `dead`, which a person must see. Finishing moves a row to `job_history`.
-- Nothing that a claim changes is indexed: the claim is a heap-only update and writes no index entry. That is why
-- there is no index on state, token or lease, and why the lease is a row of its own, one for all jobs claimed together.

create type :schema.job_state as enum ('pending', 'running', 'done', 'dead', 'cancelled');

-- The only clock. Tests replace this function to move time; everything else calls it. One statement sees one instant.
create function :schema.clock() returns timestamptz language sql stable
  as 'select pg_catalog.statement_timestamp()';

create table :schema.jobs (
  id uuid primary key,
  run_at timestamptz not null,
  created_at timestamptz not null,
  started_at timestamptz,
  cancel_requested_at timestamptz,
  -- Who may write about the present run. Kept after the run was settled, so that "the reply was lost" can be told
  -- from "the lease was lost"; only `state = 'running' and token = …` is the fence.
  token bigint,
  -- Place in the group, given out under the group's row lock.
  group_seq bigint,
  attempt integer not null default 0,
  max_attempts integer not null,
  -- Never reset: gives the order of runs to tests and people.
  claim_count integer not null default 0,
  -- -priority, so that an ascending index starts with what runs first.
  rank smallint not null,
  -- Why the claim index does not list the row: 0 listed, 1 behind the head of its group, 2 suspect (runs alone),
  -- 3 dead, 4 ending (the janitor buries or cancels it).
  hold smallint not null default 0,
  crash_count smallint not null default 0,
  state :schema.job_state not null default 'pending',
  kind text collate "C" not null,
  queue text collate "C" not null,
  payload jsonb not null,
  key text collate "C",
  coalesce_key text collate "C",
  group_key text collate "C",
  -- The newest payload of a coalescing enqueue that arrived during a run.
  rerun jsonb,
  last_error jsonb,
  progress jsonb,
  on_dead jsonb,
  headers jsonb,
  constraint running_has_token check (state <> 'running' or (token is not null and started_at is not null)),
  constraint dead_is_held check ((state = 'dead') = (hold = 3)),
  constraint live_states check (state in ('pending', 'running', 'dead'))
) with (
  -- Room for the claim's new row version beside the old one.
  fillfactor = 50,
  autovacuum_vacuum_scale_factor = 0.01,
  autovacuum_vacuum_threshold = 5000,
  autovacuum_vacuum_insert_scale_factor = 0.1,
  autovacuum_analyze_scale_factor = 0.1,
  autovacuum_analyze_threshold = 5000,
  autovacuum_vacuum_cost_delay = 0
);

create index jobs_claimable on :schema.jobs (kind, rank, run_at, id) where hold = 0;
create index jobs_set_apart on :schema.jobs (hold, kind, run_at) where hold in (2, 4);
create index jobs_dead on :schema.jobs (id) where hold = 3;
create index jobs_group on :schema.jobs (group_key, group_seq) where group_key is not null;
create unique index jobs_one_open_per_coalesce_key on :schema.jobs (kind, coalesce_key)
  where coalesce_key is not null and hold <> 3;

-- One row for all jobs of one claim that have the same lease. The row is a clock; the fence is the job's own row.
create table :schema.leases (
  token bigint not null,
  lease_ms integer not null,
  expires_at timestamptz not null,
  worker_id uuid not null,
  -- A suspect was claimed into an otherwise empty process: a crash now is its own.
  alone boolean not null default false,
  job_ids uuid[] not null,
  -- Cancel requests for jobs under this lease: the next beat brings them to the worker.
  cancel_ids uuid[] not null default '{}',
  primary key (token, lease_ms)
) with (
  fillfactor = 70,
  autovacuum_vacuum_scale_factor = 0.01,
  autovacuum_vacuum_threshold = 1000,
  autovacuum_vacuum_cost_delay = 0
);

-- Ids do not compress; trying to costs as much as a claim's index work.
alter table :schema.leases alter column job_ids set storage external;

create index leases_expiry on :schema.leases (expires_at);

create table :schema.job_history (
  id uuid not null,
  finished_at timestamptz not null,
  created_at timestamptz not null,
  run_at timestamptz not null,
  started_at timestamptz,
  -- null: kept for ever.
  purge_at timestamptz,
  token bigint,
  attempt integer not null,
  max_attempts integer not null,
  claim_count integer not null,
  rank smallint not null,
  state :schema.job_state not null,
  -- Purged row by row before its partition can be dropped.
  purge_early boolean not null default false,
  kind text collate "C" not null,
  queue text collate "C" not null,
  payload jsonb not null,
  result jsonb,
  key text collate "C",
  coalesce_key text collate "C",
  group_key text collate "C",
  last_error jsonb,
  progress jsonb,
  headers jsonb,
  primary key (id, finished_at)
) partition by range (finished_at);

create index job_history_purge_early on :schema.job_history (purge_at) where purge_early;

-- The ledger of idempotency keys. It outlives the jobs: purging a job never frees its key.
create table :schema.job_keys (
  kind text collate "C" not null,
  key text collate "C" not null,
  job_id uuid not null,
  payload_hash uuid not null,
  created_at timestamptz not null,
  -- null: kept for ever.
  expires_at timestamptz,
  primary key (kind, key)
);

create index job_keys_expiry on :schema.job_keys (expires_at) where expires_at is not null;

-- Who is at the head of a group. Its row lock is what orders enqueues and settles of one group.
create table :schema.job_groups (
  name text collate "C" primary key,
  head uuid,
  tail bigint not null
) with (fillfactor = 70);

-- Failed attempts, appended only.
create table :schema.attempts (
  job_id uuid not null,
  claim_count integer not null,
  attempt integer not null,
  started_at timestamptz,
  failed_at timestamptz not null,
  outcome text not null,
  error jsonb,
  primary key (job_id, claim_count)
);

create index attempts_failed_at on :schema.attempts (failed_at);

create table :schema.workers (
  id uuid primary key,
  name text collate "C" not null,
  started_at timestamptz not null,
  beat_at timestamptz not null,
  concurrency integer not null,
  kinds text[] not null,
  running integer not null default 0
) with (fillfactor = 50);
