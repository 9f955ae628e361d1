-- Batches: bulk work whose items are counted, paused, cancelled, retried and handed back.
--
-- Items wait here, not in `jobs`. A batch has as many slots as its concurrency; an item in a slot is an ordinary job, and
-- whatever frees a slot gives it to the next item in the same commit. Everything that changes a batch holds the lock of
-- its row, so its changes have one order: the log's.

alter table :schema.jobs
  -- Null for every job that is not an item.
  add column batch_id uuid,
  add column batch_seq bigint;

create index jobs_of_batch on :schema.jobs (batch_id, batch_seq) where batch_id is not null;
-- Items that gave their slot to others while they wait for a retry, or for their batch to go on (7).
create index jobs_parked on :schema.jobs (batch_id, run_at) where hold = 7;

create table :schema.batches (
  id uuid primary key,
  created_at timestamptz not null,
  started_at timestamptz,
  paused_at timestamptz,
  -- No more items can be added.
  closed_at timestamptz,
  finished_at timestamptz,
  deleted_at timestamptz,
  -- When its items may go; null: never, or not finished.
  purge_at timestamptz,
  purged_at timestamptz,
  -- Of an open batch: when something was last added.
  touched_at timestamptz not null,
  -- How many items there will be, if that was said.
  total bigint,
  -- Errors up to this entry of the log are on their way back to pending, those up to this item already.
  retry_n bigint,
  retry_seq bigint not null default 0,
  keep_ms bigint,
  keep_key_ms bigint,
  open_ms bigint not null,
  hand_ms bigint not null,
  hand_tries integer not null,
  concurrency integer not null,
  attempts integer not null,
  completions integer not null default 0,
  rank smallint not null,
  state text collate "C" not null default 'queued',
  kind text collate "C" not null,
  queue text collate "C" not null,
  owner text collate "C",
  key text collate "C",
  -- Why it was cancelled, if not because somebody asked.
  reason text,
  -- label → { countsAs, warning }, as the kind had them when the batch was made.
  outcomes jsonb not null,
  on_done jsonb,
  -- Fields of the owner's own, and when and by whom each was last written.
  fields jsonb not null default '{}',
  field_times jsonb not null default '{}',
  constraint known_state check (state in ('queued', 'running', 'paused', 'done', 'cancelled')),
  constraint done_is_finished check (state <> 'done' or (finished_at is not null and closed_at is not null)),
  constraint some_concurrency check (concurrency > 0),
  constraint some_total check (total is null or total >= 0)
) with (fillfactor = 70);

create unique index batches_one_per_key on :schema.batches (kind, key) where key is not null;
create index batches_of_owner on :schema.batches (owner, id);
-- What a chore may have to do something about.
create index batches_unfinished on :schema.batches (id) where finished_at is null;
create index batches_purgeable on :schema.batches (purge_at) where purge_at is not null and purged_at is null;
create index batches_tombstones on :schema.batches (purged_at) where purged_at is not null;

-- Written once, and never changed until it is purged.
create table :schema.batch_items (
  batch_id uuid not null,
  seq bigint not null,
  payload jsonb not null,
  primary key (batch_id, seq)
);

-- What became of items: one row when the item ends, or is handed over to its owner (then without an outcome yet).
create table :schema.batch_outcomes (
  batch_id uuid not null,
  seq bigint not null,
  -- The entry of the log that it came with.
  n bigint not null,
  at timestamptz not null,
  started_at timestamptz,
  handed_until timestamptz,
  job_id uuid not null,
  -- Of the run that wrote it, so that "the reply was lost" can be told from "the lease was lost".
  token bigint,
  parcel_id uuid,
  attempt integer not null,
  -- How often it came back because nobody acked it.
  bounces integer not null default 0,
  -- Null: handed over.
  outcome text collate "C",
  fingerprint text collate "C",
  error jsonb,
  result jsonb,
  primary key (batch_id, seq),
  constraint handed_until_when check (outcome is not null or (parcel_id is not null and handed_until is not null))
) with (fillfactor = 90);

create index batch_outcomes_by_label on :schema.batch_outcomes (batch_id, outcome, seq);
create index batch_outcomes_handed on :schema.batch_outcomes (handed_until) where outcome is null;

-- Items that wait again: a retry of what failed, a hand-over that nobody acked. Taken in this order.
create table :schema.batch_returns (
  batch_id uuid not null,
  n bigint not null,
  seq bigint not null,
  bounces integer not null,
  primary key (batch_id, n)
);

-- Who adds items, and how many of each writer's were taken: what is sent again is known.
create table :schema.batch_writers (
  batch_id uuid not null,
  writer text collate "C" not null,
  accepted bigint not null,
  primary key (batch_id, writer)
) with (fillfactor = 50);

-- What happened to a batch, in order, and how it stood afterwards. Appended only: the newest row has the counters, and
-- no row is ever written twice, so that a held snapshot makes nothing slower.
create table :schema.batch_log (
  batch_id uuid not null,
  n bigint not null,
  at timestamptz not null,
  -- Items that came, and how many of them had a slot at least once; returns, and how many of these.
  added bigint not null,
  taken bigint not null,
  returned bigint not null,
  retaken bigint not null,
  handed bigint not null,
  ended_total bigint not null,
  -- Where the present and the last window for the rate began.
  pace_at timestamptz not null,
  pace_ended bigint not null,
  pace_before_at timestamptz not null,
  pace_before_ended bigint not null,
  admitted integer not null,
  parked integer not null,
  what text collate "C" not null,
  state text collate "C" not null,
  by text,
  -- Items that this changed.
  seqs bigint[],
  -- label → how many.
  ended jsonb not null,
  primary key (batch_id, n),
  constraint adds_up check (added = ended_total + handed + admitted + parked + (added - taken) + (returned - retaken)),
  constraint nothing_negative check (taken <= added and retaken <= returned and handed >= 0 and admitted >= 0 and parked >= 0)
);

-- Errors that look alike.
create table :schema.batch_errors (
  batch_id uuid not null,
  fingerprint text collate "C" not null,
  count bigint not null,
  first_at timestamptz not null,
  last_at timestamptz not null,
  last_seq bigint not null,
  sample jsonb not null,
  primary key (batch_id, fingerprint)
) with (fillfactor = 70);
