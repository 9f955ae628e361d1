-- The last updates that were handled within the call, for the page: without it a gateway whose bots are all async would
-- walk its whole transcript to find none.
create index telegram_messages_at_once on :schema.telegram_messages (id) where purpose = 'update' and job_id is null;
