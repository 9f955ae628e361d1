-- A worker that was asked to stop: it takes no more jobs, gives those that run their grace, and ends.
alter table :schema.workers add column stop_asked_at timestamptz;

-- Keys that only Holdfast itself uses: "views" signs what end users are given to look at one job or batch.
create table :schema.secrets (
  name text collate "C" primary key,
  value text not null
);

-- Roles that were granted every table to come, but not those about who may call, must not read keys either.
-- The schema is found by a type of its own: its name may hold any quote, and stands in no text here.
do $$
declare
  v_secrets oid;
  v_tokens oid;
  v_role name;
begin
  select max(c.oid) filter (where c.relname = 'secrets'), max(c.oid) filter (where c.relname = 'access_tokens')
  into v_secrets, v_tokens
  from pg_class c join pg_type t on t.typnamespace = c.relnamespace
  where t.oid = pg_typeof(cast(null as :schema.job_state)) and c.relkind = 'r';
  for v_role in
    select r.rolname from pg_roles r, pg_class c
    where c.oid = v_secrets and r.oid <> c.relowner
      and exists (select 1 from aclexplode(c.relacl) a where a.grantee = r.oid)
      and not has_table_privilege(r.oid, v_tokens, 'select')
  loop
    execute format('revoke all on %s from %I', v_secrets::regclass, v_role);
  end loop;
end
$$;

insert into :schema.secrets (name, value) values ('views', gen_random_uuid()::text || gen_random_uuid()::text);
