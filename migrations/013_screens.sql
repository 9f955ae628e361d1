-- What screens need besides the figures of 008: how long jobs waited and ran as distributions, errors by what they have in
-- common, and actions on many jobs at once.

-- How many runs waited and ran for how long: the n-th number counts those below 2^(n-1) ms, and not below half of that.
alter table :schema.run_counts
  add column waits bigint[] not null default '{}',
  add column durations bigint[] not null default '{}';

-- What failed attempts have in common: the kind, and the fingerprint of the error.
create table :schema.errors (
  kind text collate "C" not null,
  fingerprint text collate "C" not null,
  -- Of the newest one.
  queue text collate "C" not null,
  name text not null,
  message text not null,
  last_job_id uuid not null,
  first_seen_at timestamptz not null,
  last_seen_at timestamptz not null,
  primary key (kind, fingerprint)
) with (fillfactor = 70);

create index errors_last_seen on :schema.errors (last_seen_at);

-- How often each was seen, by ten minutes.
create table :schema.error_counts (
  kind text collate "C" not null,
  fingerprint text collate "C" not null,
  at timestamptz not null,
  retries bigint not null,
  deaths bigint not null,
  primary key (kind, fingerprint, at)
) with (fillfactor = 70);

create index error_counts_at on :schema.error_counts (at);

-- The dead by what killed them. Only dead rows have an entry.
create index jobs_dead_by_error on :schema.jobs
  (kind, (coalesce(last_error ->> 'fingerprint', last_error ->> 'reason', 'unknown') collate "C"), id) where hold = 3;

-- Actions on all jobs that match a filter, carried out in the background, newest job first.
create table :schema.actions (
  id uuid primary key,
  verb text not null,
  filter jsonb not null,
  -- As people wrote it.
  title text not null,
  state text not null default 'running',
  asked_by text not null,
  created_at timestamptz not null,
  finished_at timestamptz,
  -- null: as fast as it goes.
  per_minute integer,
  -- Jobs with this id or a later one are not looked at, or were already.
  below uuid not null,
  -- What was changed, and what could not be.
  done bigint not null default 0,
  skipped bigint not null default 0,
  -- How many were expected when it was asked for, counted up to a bound.
  expected bigint,
  error text,
  constraint actions_states check (state in ('running', 'done', 'cancelled', 'failed')),
  constraint actions_verbs check (verb in ('retry', 'discard', 'cancel'))
);

create index actions_open on :schema.actions (id) where state = 'running';
