-- The claim index has columns of fixed width only. Behind a text PostgreSQL has to look for each further column of an entry anew, in every
-- comparison, and a thousand jobs enqueued together differ in the last column alone. Two kinds with one hash share a place in it: whoever
-- reads it also asks for the kind. No two entries are equal, so that trying to merge them is in vain.
drop index :schema.jobs_claimable;
create index jobs_claimable on :schema.jobs (hashtext(kind), rank, run_at, id) with (deduplicate_items = off) where hold = 0;
