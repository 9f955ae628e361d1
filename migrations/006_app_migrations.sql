-- Which of an app's own migrations were applied. Apps keep their tables in this schema too.

create table :schema.app_migrations (
  app text collate "C" not null,
  -- From 1, in the order of the app's list.
  position integer not null,
  name text not null,
  -- SHA-256 of its text, to notice one that was changed after it had been applied.
  hash text not null,
  applied_at timestamptz not null,
  primary key (app, position)
);
