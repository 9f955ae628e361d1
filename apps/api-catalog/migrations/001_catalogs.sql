create table :schema.catalog_catalogs (
  id text primary key,
  name text not null,
  created_at timestamptz not null default :schema.clock()
);

-- `revision` counts uploads that changed something, `epoch` how often all was to be embedded again. `model` is the one
-- that searches use; null until the first vector is there.
create table :schema.catalog_specs (
  id uuid primary key,
  catalog_id text not null references :schema.catalog_catalogs (id) on delete cascade,
  name text not null,
  title text not null,
  version text not null,
  format text not null,
  content_hash text not null,
  problems jsonb not null,
  operation_count integer not null,
  revision bigint not null default 1,
  epoch bigint not null default 1,
  model text,
  job_id uuid,
  indexed_at timestamptz,
  failures integer not null default 0,
  parked_until_at timestamptz,
  parked_job_id uuid,
  created_at timestamptz not null default :schema.clock(),
  updated_at timestamptz not null default :schema.clock(),
  unique (catalog_id, name)
);

create table :schema.catalog_operations (
  spec_id uuid not null references :schema.catalog_specs (id) on delete cascade,
  operation text not null,
  method text not null,
  path text not null,
  operation_id text,
  summary text not null,
  description text not null,
  tags text[] not null,
  content text not null,
  hash text not null,
  words tsvector not null,
  primary key (spec_id, operation)
);

create index catalog_operations_words on :schema.catalog_operations using gin (words);

-- Of the hash and the epoch it was made from. Rows of a model that is not the spec's are a rebuild under way, and seen by
-- nobody. A vector is its numbers as 4 bytes each, little end first, of length 1.
create table :schema.catalog_vectors (
  spec_id uuid not null references :schema.catalog_specs (id) on delete cascade,
  model text not null,
  operation text not null,
  hash text not null,
  epoch bigint not null,
  generation bigint not null,
  vector bytea not null,
  primary key (spec_id, model, operation)
);
