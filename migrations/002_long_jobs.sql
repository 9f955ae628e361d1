-- Long jobs: what a run has finished outlives the run. Notes are written in the commit of the work they speak of, only
-- while the run holds its lease, and go when the job does.

create table :schema.job_notes (
  job_id uuid not null,
  -- step: it happened, with its result. chunks: how far a list of items is saved. checkpoint: the handler's own cursor.
  -- generation: which generation of a unit this job builds.
  sort text not null,
  name text not null,
  value jsonb not null,
  written_at timestamptz not null,
  primary key (job_id, sort, name)
) with (fillfactor = 70);

-- Items of a keyed list that are saved.
create table :schema.job_saved_items (
  job_id uuid not null,
  name text not null,
  key text not null,
  primary key (job_id, name, key)
);

-- Results that are built piece by piece and become canonical at once: which generation of a unit readers should see.
create table :schema.generations (
  unit text primary key,
  -- 0: none yet.
  current bigint not null default 0,
  newest bigint not null default 0,
  switched_at timestamptz
) with (fillfactor = 70);
