-- PostgreSQL reads the text of every check anew in each statement that writes a row: a fifth of what storing one job cost. What they said is
-- said by the statements' own guards, and looked for after every test, race and storm (test/support/assert-sound.ts).
alter table :schema.jobs drop constraint running_has_token, drop constraint dead_is_held, drop constraint live_states;
alter table :schema.leases drop constraint light_has_lane;
