-- Light leases: a claim that takes many short jobs writes only its lease row. The jobs' own rows stay `pending` until
-- they are settled, or until somebody needs them marked (see store/jobs/mark.ts).

alter table :schema.leases
  add column light boolean not null default false,
  -- The lane it was taken from, when, and the last place it took: of light leases only.
  add column kind text collate "C",
  add column rank smallint,
  add column claimed_at timestamptz,
  add column last_run_at timestamptz,
  add column last_id uuid,
  add constraint light_has_lane check (not light or (kind is not null and rank is not null and claimed_at is not null
    and last_run_at is not null and last_id is not null));

create index leases_light on :schema.leases (kind, rank) where light;
