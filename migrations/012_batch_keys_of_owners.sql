-- A batch's key is its owner's: the same key of two owners is two batches, and nobody's key tells anything about another's.
drop index :schema.batches_one_per_key;
create unique index batches_one_per_key on :schema.batches (kind, key, coalesce(owner, '')) where key is not null;
