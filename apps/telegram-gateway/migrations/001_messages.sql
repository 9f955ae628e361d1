-- What was said in each chat, both ways. One update has one row of each purpose and part: what is inserted here is said
-- once, however often its job runs.
create table :schema.telegram_messages (
  id bigint generated always as identity primary key,
  bot text not null,
  update_id bigint not null,
  -- Null for updates without a chat, such as inline queries.
  chat_id bigint,
  user_name text,
  purpose text not null check (purpose in ('update', 'reply', 'slow', 'gave-up', 'failed', 'sign-in')),
  part integer not null default 0,
  body text not null,
  state text not null check (state in ('received', 'handled', 'failed', 'refused', 'waiting', 'sent', 'undeliverable')),
  error text,
  -- The job that handles an update, or sends a message.
  job_id uuid,
  telegram_id bigint,
  created_at timestamptz not null default :schema.clock(),
  sent_at timestamptz,
  check ((purpose = 'update') = (state in ('received', 'handled', 'failed', 'refused')))
);

create unique index telegram_messages_once on :schema.telegram_messages (bot, update_id, purpose, part);
create index telegram_messages_chat on :schema.telegram_messages (bot, chat_id, id);
create index telegram_messages_old on :schema.telegram_messages (created_at);

-- Who has shown the secret, and until when that counts.
create table :schema.telegram_sessions (
  user_id bigint primary key,
  until_at timestamptz,
  wrong_count integer not null default 0,
  wrong_since_at timestamptz
);

-- How many updates came to what, for each bot. Written by each process once a second.
create table :schema.telegram_counts (
  bot text not null,
  what text not null,
  total bigint not null,
  primary key (bot, what)
);
