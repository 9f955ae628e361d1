-- Jobs that are copied in (store/jobs/insert.ts) take their times from the database's clock, as inserted ones do.

alter table :schema.jobs alter column run_at set default :schema.clock();
alter table :schema.jobs alter column created_at set default :schema.clock();
