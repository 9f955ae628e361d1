-- enqueue() as 016 made it, with the same name, arguments and rights. What it refuses besides: fields of
-- on_dead that nobody reads, and a delay that no clock can be set to. A key that somebody took while it
-- waited for them is theirs.
create or replace function :schema.enqueue(
  kind text,
  payload jsonb default 'null',
  key text default null,
  coalesce_key text default null,
  group_key text default null,
  run_at timestamptz default null,
  delay interval default null,
  priority integer default 0,
  queue text default 'default',
  attempts integer default 5,
  -- null: for ever.
  keep_key interval default '30 days',
  on_dead jsonb default null,
  headers jsonb default null,
  -- Of a job that has a past somewhere else.
  attempts_used integer default 0,
  last_error text default null,
  wake boolean default true
) returns table (id uuid, created boolean, conflict boolean, coalesced boolean)
language plpgsql
set search_path = pg_catalog
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $enqueue$
#variable_conflict use_column
declare
  name_form constant text := '^[A-Za-z0-9][A-Za-z0-9._:/-]{0,127}$';
  name_hint constant text := 'Use 1 to 128 letters, digits and . _ : / - and start with a letter or a digit.';
  most_bytes constant integer := 10485760;
  most_depth constant jsonpath := 'strict $.**{200} ? (@.type() == "object" || @.type() == "array")';
  the_payload jsonb := coalesce(enqueue.payload, 'null');
  hash uuid := md5(the_payload::text)::uuid;
  bytes integer := octet_length(the_payload::text);
  wrong text;
  hint text;
  due timestamptz;
  micros bigint;
  made uuid;
  outcome record;
  schema_name text;
begin
  if coalesce(enqueue.kind !~ name_form, true) then
    wrong := format('enqueue() kind is %s.', coalesce(quote_literal(enqueue.kind), 'null'));
    hint := name_hint;
  elsif coalesce(enqueue.queue !~ name_form, true) then
    wrong := format('enqueue() queue is %s.', coalesce(quote_literal(enqueue.queue), 'null'));
    hint := name_hint;
  elsif coalesce(enqueue.priority not between -100 and 100, true) then
    wrong := format('enqueue() priority is %s.', coalesce(enqueue.priority::text, 'null'));
    hint := 'Give a whole number from -100 to 100.';
  elsif coalesce(enqueue.attempts not between 1 and 1000, true) then
    wrong := format('enqueue() attempts is %s.', coalesce(enqueue.attempts::text, 'null'));
    hint := 'Give a whole number from 1 to 1000.';
  elsif coalesce(enqueue.attempts_used not between 0 and enqueue.attempts - 1, true) then
    wrong := format('enqueue() attempts_used is %s.', coalesce(enqueue.attempts_used::text, 'null'));
    hint := 'Give a whole number that is less than attempts: a job without one left is dead.';
  elsif enqueue.run_at is not null and enqueue.delay is not null then
    wrong := 'enqueue() has both run_at and delay.';
    hint := 'Give one of them.';
  elsif enqueue.run_at is not null
    and (enqueue.run_at < '1970-01-01 00:00:00+00' or enqueue.run_at >= '10000-01-01 00:00:00+00') then
    wrong := format('enqueue() run_at is %s.', enqueue.run_at);
    hint := 'Give a time from 1970 to 9999.';
  elsif enqueue.delay < interval '0' then
    wrong := format('enqueue() delay is %s.', enqueue.delay);
    hint := 'Give one that is not negative.';
  -- The sum itself fails for what is much longer.
  elsif enqueue.delay is not null
    and :schema.clock() + least(enqueue.delay, interval '9999 years') >= '10000-01-01 00:00:00+00' then
    wrong := format('enqueue() delay is %s.', enqueue.delay);
    hint := 'Give one that ends before the year 10000.';
  elsif enqueue.keep_key <= interval '0' then
    wrong := format('enqueue() keep_key is %s.', enqueue.keep_key);
    hint := 'Give how long the key is kept, or null for ever.';
  elsif length(enqueue.key) not between 1 and 500 then
    wrong := format('enqueue() key is %s characters long.', length(enqueue.key));
    hint := 'Give a text of 1 to 500 characters.';
  elsif length(enqueue.coalesce_key) not between 1 and 500 then
    wrong := format('enqueue() coalesce_key is %s characters long.', length(enqueue.coalesce_key));
    hint := 'Give a text of 1 to 500 characters.';
  elsif length(enqueue.group_key) not between 1 and 500 then
    wrong := format('enqueue() group_key is %s characters long.', length(enqueue.group_key));
    hint := 'Give a text of 1 to 500 characters.';
  elsif enqueue.coalesce_key is not null and coalesce(enqueue.key, enqueue.group_key) is not null then
    wrong := format('enqueue() has coalesce_key together with %s.',
      case when enqueue.key is null then 'group_key' else 'key' end);
    hint := 'A key accepts once for ever and a group keeps order; coalescing replaces what waits. Choose one.';
  elsif enqueue.on_dead is not null and coalesce(enqueue.on_dead ->> 'kind' !~ name_form, true) then
    wrong := format('enqueue() on_dead.kind is %s.', coalesce(quote_literal(enqueue.on_dead ->> 'kind'), 'null'));
    hint := name_hint;
  elsif enqueue.on_dead ->> 'queue' !~ name_form then
    wrong := format('enqueue() on_dead.queue is %s.', quote_literal(enqueue.on_dead ->> 'queue'));
    hint := name_hint;
  elsif enqueue.on_dead - '{kind,payload,queue}'::text[] <> '{}' then
    wrong := format('enqueue() on_dead has the unknown field %s.',
      (select quote_literal(min(f.name)) from jsonb_object_keys(enqueue.on_dead - '{kind,payload,queue}'::text[]) as f (name)));
    hint := 'Known fields: kind, payload, queue.';
  elsif jsonb_typeof(enqueue.headers) <> 'object' then
    wrong := format('enqueue() headers is of the type %s.', jsonb_typeof(enqueue.headers));
    hint := 'Give an object of texts.';
  elsif bytes > most_bytes then
    wrong := format('enqueue() of %s: the payload is %s bytes of JSON; at most %s are taken.', enqueue.kind, bytes, most_bytes);
    hint := 'Put the bytes into an inbox or a store of yours and hand over a reference.';
  -- Only a long text can be deep.
  elsif bytes >= 400 and jsonb_path_exists(the_payload, most_depth) then
    wrong := format('enqueue() of %s: the payload is nested deeper than 200 levels.', enqueue.kind);
    hint := 'Flatten it.';
  end if;
  if wrong is not null then
    raise exception using errcode = 'invalid_parameter_value', message = wrong, hint = hint;
  end if;

  due := coalesce(enqueue.run_at, :schema.clock() + coalesce(enqueue.delay, interval '0'));
  -- UUIDv7: milliseconds, then their thousandths, so that jobs of one statement keep their order.
  micros := floor(extract(epoch from clock_timestamp()) * 1000000);
  made := encode(
    overlay(overlay(uuid_send(gen_random_uuid()) placing substring(int8send(micros / 1000) from 3) from 1 for 6)
      placing int2send((28672 + micros % 1000 * 4)::smallint) from 7 for 2), 'hex')::uuid;

  with k as (
    insert into :schema.job_keys as l (kind, key, job_id, payload_hash, created_at, expires_at)
    select enqueue.kind, enqueue.key, made, hash, :schema.clock(), :schema.clock() + enqueue.keep_key
    where enqueue.key is not null
    on conflict (kind, key) do update set
      (job_id, payload_hash, created_at, expires_at) = (
        select x.job_id, x.payload_hash, x.created_at, x.expires_at
        from (values
          (true, excluded.job_id, excluded.payload_hash, excluded.created_at, excluded.expires_at),
          (false, l.job_id, l.payload_hash, l.created_at, l.expires_at)
        ) as x (is_new, job_id, payload_hash, created_at, expires_at)
        where x.is_new = coalesce(
          l.expires_at < :schema.clock() and not exists (select 1 from :schema.jobs j where j.id = l.job_id)
            -- Of what took it while this statement waited, it cannot see the job.
            and l.job_id = (
              select b.job_id from :schema.job_keys b where b.kind = enqueue.kind and b.key = enqueue.key), false))
    returning l.job_id, l.payload_hash
  ),
  fresh as materialized (
    select 1 as one where enqueue.key is null or exists (select 1 from k where k.job_id = made)
  ),
  g as (
    insert into :schema.job_groups as l (name, head, tail)
    select enqueue.group_key, made, 1 from fresh where enqueue.group_key is not null
    on conflict (name) do update set tail = l.tail + 1, head = coalesce(l.head, excluded.head)
    returning l.head, l.tail
  ),
  i as (
    insert into :schema.jobs as l (id, kind, queue, rank, run_at, created_at, max_attempts, payload, on_dead, headers,
      key, coalesce_key, group_key, group_seq, hold, attempt, claim_count, last_error)
    select made, enqueue.kind, enqueue.queue, -enqueue.priority, due, :schema.clock(), enqueue.attempts, the_payload,
      enqueue.on_dead, enqueue.headers, enqueue.key, enqueue.coalesce_key, enqueue.group_key, g.tail,
      case when enqueue.group_key is null or g.head = made then 0 else 1 end, enqueue.attempts_used,
      enqueue.attempts_used,
      case when enqueue.last_error is not null
        then jsonb_build_object('name', 'Error', 'message', left(enqueue.last_error, 4096)) end
    from fresh left join g on true
    on conflict (kind, coalesce_key) where coalesce_key is not null and hold <> 3 do update set
      payload = case when l.state = 'running' then l.payload else excluded.payload end,
      rerun = case when l.state = 'running' then excluded.payload end,
      attempt = case when l.state = 'running' then l.attempt else 0 end,
      hold = case when l.hold = 4 then 0 else l.hold end,
      crash_count = case when l.hold = 4 then 0 else l.crash_count end,
      cancel_requested_at = case when l.hold = 4 then null else l.cancel_requested_at end,
      run_at = case when l.state = 'running' then l.run_at else least(l.run_at, excluded.run_at) end
    returning l.id
  )
  select coalesce(k.job_id, i.id) as job_id,
    (k.job_id is not null and k.job_id <> made and k.payload_hash <> hash) as conflict,
    (i.id is not null and i.id <> made) as coalesced
  into outcome
  from (values (1)) as one left join k on true left join i on true;

  -- One message for a transaction, however many jobs it accepts; nothing rests on it.
  if enqueue.wake and due <= :schema.clock() then
    select n.nspname into schema_name from pg_type t join pg_namespace n on n.oid = t.typnamespace
    where t.oid = pg_typeof(cast(null as :schema.job_state));
    perform pg_notify(
      case when octet_length('holdfast:' || schema_name) <= 63 then 'holdfast:' || schema_name
        else 'holdfast:' || left(encode(sha256(convert_to(schema_name, 'UTF8')), 'hex'), 40) end,
      '{"from":"sql","everything":true}');
  end if;

  return query select outcome.job_id, outcome.job_id = made, outcome.conflict, outcome.coalesced;
end
$enqueue$;
