-- The last try of the open job that embedded something: tries are counted from there.
alter table :schema.catalog_specs add column fruitful_job_id uuid, add column fruitful_attempt integer;
