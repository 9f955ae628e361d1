-- Chores: whose turn it is, and what was done.
--
-- One row per chore, for all processes. Whoever runs it holds the row by a token that it keeps alive; a token that is
-- not kept alive is taken over. Rows are tiny and few, and written only when a chore runs.

create table :schema.chores (
  name text collate "C" primary key,
  -- Who runs it now; null: nobody.
  token bigint,
  run_by text,
  started_at timestamptz,
  expires_at timestamptz,
  -- Not before this, unless somebody asks.
  next_at timestamptz not null,
  finished_at timestamptz,
  succeeded_at timestamptz,
  -- Failures since the last success.
  failures integer not null default 0,
  error text,
  constraint held_or_free check ((token is null) = (expires_at is null))
) with (fillfactor = 50);

-- Runs that did something or failed.
create table :schema.chore_runs (
  id bigint generated always as identity primary key,
  chore text collate "C" not null,
  started_at timestamptz not null,
  took_ms integer not null,
  -- How many of what: {"done": 1000}.
  rows jsonb not null,
  error text,
  run_by text not null
);

create index chore_runs_of_chore on :schema.chore_runs (chore, id);
