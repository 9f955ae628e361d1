-- A workspace: an agent somewhere, and how files reach it. No mode means push, as it did before there were two.
create table :schema.chat_uploads_workspaces (
  id uuid primary key,
  name text not null check (length(name) between 1 and 100),
  delivery_mode text check (delivery_mode in ('poll', 'push')),
  callback_url text,
  callback_token text,
  -- The number of its newest notice. Whoever adds one holds this row until the commit, so that numbers become visible
  -- in their order and a reader who remembers the last one it saw misses nothing.
  last_notice bigint not null default 0,
  created_at timestamptz not null
);

-- What was said in the chat.
create table :schema.chat_uploads_messages (
  id uuid primary key,
  workspace_id uuid not null,
  author text not null check (author in ('person', 'workspace')),
  text text not null,
  created_at timestamptz not null
);
create index chat_uploads_messages_of_workspace on :schema.chat_uploads_messages (workspace_id, created_at, id);
create index chat_uploads_messages_old on :schema.chat_uploads_messages (created_at);

-- Files that were sent. Their bytes are a parcel of the same id. No reference to the workspace: a row says that a file
-- was received, whatever becomes of the workspace.
create table :schema.chat_uploads_files (
  id uuid primary key,
  workspace_id uuid not null,
  message_id uuid,
  -- Its place in the message.
  place integer,
  name text not null check (length(name) between 1 and 100),
  type text not null default '',
  size bigint not null check (size > 0),
  sha256 text not null,
  -- The job that posts it, for a workspace with a callback.
  push_job_id uuid,
  created_at timestamptz not null
);
create index chat_uploads_files_of_message on :schema.chat_uploads_files (message_id) where message_id is not null;
create index chat_uploads_files_old on :schema.chat_uploads_files (created_at);

-- What a workspace is told, in order: a file waits for you; somebody wrote.
create table :schema.chat_uploads_notices (
  workspace_id uuid not null,
  seq bigint not null,
  method text not null check (method in ('chat_upload_receive', 'chat_message')),
  body jsonb not null,
  created_at timestamptz not null,
  primary key (workspace_id, seq)
);
create index chat_uploads_notices_old on :schema.chat_uploads_notices (created_at);
