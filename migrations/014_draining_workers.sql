-- A worker that was asked to take no more jobs. It learns of it with its next beat, or at once when it is woken.
alter table :schema.workers
  add column drain_asked_at timestamptz,
  add column drain_asked_by text;
