-- Batches: what their chores have to know, and the feed of changes for clients that keep a copy.

alter table :schema.batches
  -- What an item came to whose parcel was acked by somebody who did not say.
  add column acked_as text collate "C",
  -- The entry of the log up to which the counters were compared with the items.
  add column checked_n bigint not null default 0;

-- Changes that nobody has put in order yet: written with the change, taken out by whoever reads the feed next.
create table :schema.batch_news (
  batch_id uuid not null,
  n bigint not null,
  owner text collate "C"
) with (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 500);

-- The feed. Its numbers are given by one reader at a time, and only to changes that have committed: whoever has seen a
-- number has seen, or can see, everything before it.
create table :schema.batch_feed (
  seq bigint generated always as identity primary key,
  batch_id uuid not null,
  n bigint not null,
  owner text collate "C",
  at timestamptz not null
);

create index batch_feed_of_owner on :schema.batch_feed (owner, seq);
create index batch_feed_old on :schema.batch_feed (at);

-- Clients that send commands: how many of each were applied.
create table :schema.batch_clients (
  owner text collate "C" not null,
  client text collate "C" not null,
  applied bigint not null,
  at timestamptz not null,
  primary key (owner, client)
) with (fillfactor = 70);
