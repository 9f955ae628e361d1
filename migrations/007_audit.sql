-- What people did over HTTP: who, what, to what, and how it ended. Appended only; purged by a chore.

create table :schema.audit (
  id bigint generated always as identity primary key,
  at timestamptz not null,
  -- The name of the access token.
  caller text not null,
  -- The contract: "cancelJob".
  action text not null,
  -- An id, or what stood in the address.
  target text not null,
  -- The answer's.
  status smallint not null
);
