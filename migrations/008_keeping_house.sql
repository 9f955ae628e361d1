-- What the janitor knows about the history's days, and the figures that screens and metrics show instead of counting.

-- One row per day of the history that is over. A day is read through once, in steps; after that its row says when it can
-- be dropped, and nobody has to look again.
create table :schema.history_days (
  day date primary key,
  -- How far the present walk through the day is, in pages.
  walked integer not null default 0,
  walk_last timestamptz,
  walk_next timestamptz,
  -- When the last of its jobs may go: infinity if one is kept for ever. Null: not known yet.
  drop_at timestamptz,
  -- When the first of those that are left may go.
  purge_at timestamptz
);

-- How deep each queue is, written when it changes, at most one row per minute. The newest row of a queue is its gauge.
create table :schema.queue_depths (
  queue text collate "C" not null,
  minute timestamptz not null,
  taken_at timestamptz not null,
  ready integer not null,
  scheduled integer not null,
  retrying integer not null,
  running integer not null,
  dead integer not null,
  paused integer not null,
  oldest_ready_at timestamptz,
  -- Estimated from a part of a large table.
  estimated boolean not null,
  primary key (queue, minute)
) with (fillfactor = 70);

-- What runs came to, by minute, then by hour. Each process adds its own.
create table :schema.run_counts (
  -- 60 or 3600 seconds.
  width integer not null,
  at timestamptz not null,
  queue text collate "C" not null,
  kind text collate "C" not null,
  outcome text collate "C" not null,
  runs bigint not null,
  wait_ms bigint not null,
  run_ms bigint not null,
  primary key (width, at, queue, kind, outcome)
) with (fillfactor = 70);

create table :schema.queues (
  name text collate "C" primary key,
  paused_at timestamptz,
  paused_by text
);

-- Jobs of paused queues, set aside (5; 6 if suspect) so that no claim walks past them.
create index jobs_paused on :schema.jobs (queue, id) where hold in (5, 6);
