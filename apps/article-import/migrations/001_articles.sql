-- Which pages an owner has: hashes of addresses, nothing else. Whether something is there twice can be said, what it is
-- cannot. One row for each address that leads to it: the one that was asked for, and the one it redirected to.
create table :schema.articles_saved (
  owner text not null,
  url_hash bytea not null,
  batch_id uuid not null,
  seq bigint not null,
  saved_at timestamptz not null default :schema.clock(),
  primary key (owner, url_hash)
);

create index articles_saved_item on :schema.articles_saved (batch_id, seq);

-- When the next page of a host may be asked for, by anybody.
create table :schema.articles_hosts (
  host text primary key,
  next_at timestamptz not null,
  robots text,
  robots_until_at timestamptz
);

-- Who is at a host now. A process that dies leaves its visit; its time ends.
create table :schema.articles_visits (
  host text not null,
  place integer not null,
  until_at timestamptz not null,
  primary key (host, place)
);
