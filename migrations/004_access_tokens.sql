-- Who may call the HTTP API. Only a hash of the secret is kept: whoever reads this table cannot call with it.

create table :schema.access_tokens (
  -- Part of the token, and no secret: by it the row is found, and the hashes are compared in constant time.
  id uuid primary key,
  secret_hash bytea not null,
  name text collate "C" not null,
  role text not null check (role in ('viewer', 'operator', 'admin')),
  -- Opens only what is for this recipient.
  recipient text collate "C",
  -- Opens only what is this owner's.
  owner text collate "C",
  created_at timestamptz not null,
  -- null: never.
  expires_at timestamptz,
  last_used_at timestamptz,
  revoked_at timestamptz,
  constraint one_scope check (recipient is null or owner is null)
);
