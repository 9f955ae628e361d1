-- A worker that was asked to stop: it takes no more jobs, gives those that run their grace, and ends.
alter table :schema.workers add column stop_asked_at timestamptz;

-- Keys that only Holdfast itself uses: "views" signs what end users are given to look at one job or batch.
create table :schema.secrets (
  name text collate "C" primary key,
  value text not null
);

-- Roles that were granted every table to come, but not those about who may call, must not read keys either.
do $$
declare
  v_role name;
begin
  for v_role in
    select r.rolname from pg_roles r, pg_class c
    where c.oid = ':schema.secrets'::regclass and r.oid <> c.relowner
      and exists (select 1 from aclexplode(c.relacl) a where a.grantee = r.oid)
      and not has_table_privilege(r.oid, ':schema.access_tokens', 'select')
  loop
    execute format('revoke all on :schema.secrets from %I', v_role);
  end loop;
end
$$;

insert into :schema.secrets (name, value) values ('views', gen_random_uuid()::text || gen_random_uuid()::text);
