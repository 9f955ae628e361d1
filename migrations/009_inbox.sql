-- The inbox: bytes handed to a recipient that polls, fetches and acks.
--
-- Content is rows of a fixed size, so that nobody ever holds a whole file. It is written under a draft, which nobody can
-- see; delivering turns the draft into a parcel in one commit. Content goes when its time is over; the parcel's row stays
-- behind as a tombstone that says what became of it.

create table :schema.parcels (
  id uuid primary key,
  -- No foreign key: a parcel is evidence of receipt and outlives whoever it was for.
  recipient text collate "C" not null,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  -- Until when the content can be opened: the expiry, or sooner after an ack.
  gone_at timestamptz not null,
  -- Somebody is busy with it: poll() gives it to nobody else until then, and its content stays.
  held_until timestamptz,
  fetched_at timestamptz,
  acked_at timestamptz,
  -- Set once, by the janitor, in the commit that tells the sender.
  expired_at timestamptz,
  removed_at timestamptz,
  size bigint not null,
  chunk_bytes integer not null,
  fetch_count integer not null default 0,
  sha256 bytea not null,
  name text not null,
  type text not null default '',
  key text collate "C",
  meta jsonb,
  on_expired jsonb,
  constraint has_content check (size > 0 and chunk_bytes > 0 and length(sha256) = 32),
  constraint has_name check (length(name) between 1 and 100),
  constraint never_later_than_expiry check (gone_at <= expires_at),
  constraint removed_has_reason check (removed_at is null or acked_at is not null or expired_at is not null)
) with (fillfactor = 80);

create index parcels_open on :schema.parcels (recipient, id) include (size, fetched_at)
  where acked_at is null and expired_at is null;
create index parcels_of_recipient on :schema.parcels (recipient, id);
create index parcels_expiring on :schema.parcels (gone_at) where acked_at is null and expired_at is null;
create index parcels_purgeable on :schema.parcels (gone_at)
  where removed_at is null and (acked_at is not null or expired_at is not null);
create index parcels_tombstones on :schema.parcels (removed_at) where removed_at is not null;
create unique index parcels_one_per_key on :schema.parcels (recipient, key) where key is not null;

-- Content on its way: not a parcel yet, and swept when nobody writes to it any more.
create table :schema.parcel_drafts (
  id uuid primary key,
  recipient text collate "C" not null,
  touched_at timestamptz not null,
  -- What was announced, or written so far if that is more: it counts against the quota.
  size bigint not null
) with (fillfactor = 70);

create index parcel_drafts_of_recipient on :schema.parcel_drafts (recipient) include (size);
create index parcel_drafts_silent on :schema.parcel_drafts (touched_at);

create table :schema.parcel_chunks (
  parcel_id uuid not null,
  n integer not null,
  bytes bytea not null,
  primary key (parcel_id, n)
);

-- Files are mostly compressed already; trying again costs more than the disk it saves.
alter table :schema.parcel_chunks alter column bytes set storage external;

-- What is remembered of a recipient beyond its parcels. Puts do not touch it: a caller's open transaction must not
-- make another recipient's ack wait, nor this one's.
create table :schema.inboxes (
  recipient text collate "C" primary key,
  -- The last sign of life, of any sort.
  touched_at timestamptz not null,
  polled_at timestamptz,
  fetched_at timestamptz,
  acked_at timestamptz,
  acked_count bigint not null default 0,
  acked_bytes bigint not null default 0,
  never_fetched_count bigint not null default 0,
  never_acked_count bigint not null default 0,
  expired_bytes bigint not null default 0
) with (fillfactor = 70);

create index inboxes_silent on :schema.inboxes (touched_at);
