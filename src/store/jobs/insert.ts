// Accepts jobs. One text parameter, used once: that is what every driver and query builder hands on unchanged, so the
// same two statements also run inside a caller's own transaction. (Very many plain ones are copied in outside of one.)
//
// `insertPlain` is the hot one: no key, no group, no coalescing. `insertSpecial` does all three in one commit.
import { asMicros, copyText, type Routine, routine, sql, type Store } from "../sql.ts";
import type { ClaimedJob } from "./claim.ts";

export interface NewJob {
  id: string;
  kind: string;
  queue: string;
  /** -priority. */
  rank: number;
  attempts: number;
  /** JSON text. */
  payload: string;
  runAt?: string | undefined;
  delayMs?: number | undefined;
  key?: string | undefined;
  /** null: for ever. */
  keepKeyMs?: number | null | undefined;
  coalesceKey?: string | undefined;
  group?: string | undefined;
  onDead?: string | undefined;
  headers?: string | undefined;
}

export interface Inserted {
  id: string;
  created: boolean;
  /** Same key, other payload: the first one stays. */
  conflict: boolean;
  coalesced: boolean;
}

const DUE = `coalesce(r.run_at, :schema.clock() + coalesce(r.delay_ms, 0) * interval '1 millisecond')`;

// A JSON null in a record set arrives as an SQL null.
const PAYLOAD = `coalesce(r.payload, 'null')`;

const INSERT_PLAIN = routine({
  name: "insert_jobs",
  takes: ["text"],
  gives: "void",
  body: `insert into :schema.jobs (id, kind, queue, rank, run_at, created_at, max_attempts, payload, on_dead, headers)
select r.id, r.kind, r.queue, r.rank, ${DUE}, :schema.clock(), r.max_attempts, ${PAYLOAD}, r.on_dead, r.headers
from jsonb_to_recordset($1::jsonb) as r (
  id uuid, kind text, queue text, rank smallint, max_attempts integer, payload jsonb,
  run_at timestamptz, delay_ms bigint, on_dead jsonb, headers jsonb)`,
});

// The same for many jobs that differ in id and payload only, as most of one call do: a third cheaper.
const ALIKE = `insert into :schema.jobs (id, kind, queue, rank, run_at, created_at, max_attempts, payload)
select (r.pair ->> 0)::uuid, c.kind, c.queue, c.rank, :schema.clock() + c.delay, :schema.clock(), c.max_attempts,
  r.pair -> 1
from (
  select doc -> 'pairs' as pairs, doc ->> 'kind' as kind, doc ->> 'queue' as queue, (doc ->> 'rank')::smallint as rank,
    (doc ->> 'max_attempts')::integer as max_attempts, (doc ->> 'delay_ms')::bigint * interval '1 millisecond' as delay
  from (select $1::jsonb as doc offset 0) as input offset 0
) as c, jsonb_array_elements(c.pairs) as r (pair)`;

const INSERT_ALIKE = routine({ name: "insert_alike", takes: ["text"], gives: "void", body: ALIKE });

// The same for very many that are due now: PostgreSQL then writes a page of rows at a time. The times are the columns' defaults.
const COPY_ALIKE = sql`copy :schema.jobs (id, kind, queue, rank, max_attempts, payload) from stdin`;
/** Below this a second round trip costs more than it gains. */
const FEWEST_TO_COPY = 200;
const LINES_PER_PART = 100;

// Jobs that differ in id and payload only, and the worker that waits for them has them already, under a light lease
// (store/jobs/mark.ts): nobody can see the jobs before the lease, because both come with this commit. Somebody waits for
// this one to start: two plain inserts cost half of what one statement for both does, and one job is no list.
const INSERT_TAKEN = routine({
  name: "insert_taken",
  takes: ["uuid[]", "text", "text", "text", "smallint", "integer", "bigint", "uuid", "integer"],
  gives: "payloads jsonb, run_us bigint",
  declares: ["due timestamptz := :schema.clock()", "given jsonb := $2::jsonb"],
  first: `insert into :schema.leases (token, lease_ms, expires_at, worker_id, job_ids, light, kind, rank, claimed_at, last_run_at, last_id)
values ($7, $9, due + $9 * interval '1 millisecond', $8, $1, true, $3, $5, due, due, $1[cardinality($1)]);
if cardinality($1) = 1 then
  insert into :schema.jobs (id, kind, queue, rank, run_at, created_at, max_attempts, payload)
  values ($1[1], $3, $4, $5, due, due, $6, given);
else
  insert into :schema.jobs (id, kind, queue, rank, run_at, created_at, max_attempts, payload)
  select $1[r.n], $3, $4, $5, due, due, $6, r.payload
  from jsonb_array_elements(given) with ordinality as r (payload, n);
end if;`,
  // The payloads as any later run of theirs will get them.
  body: `select given, ${asMicros("due")}`,
});

// The lock timeout is for this statement's own transaction: somebody else's open transaction with the same key or
// group must not stall the callers that share this statement. Inside a caller's transaction it is left alone.
const makeInsertSpecial = (name: string, settings: string[]): Routine =>
  routine({
    name,
    settings,
    takes: ["text"],
    gives: "n integer, id uuid, created boolean, conflict boolean, coalesced boolean",
    first: `if $1::jsonb ->> 'lock_timeout' is not null then
    perform set_config('lock_timeout', $1::jsonb ->> 'lock_timeout', true);
  end if;`,
    body: `with r as materialized (
  select r.n, r.id, r.kind, r.queue, r.rank, r.max_attempts, ${PAYLOAD} as payload, r.on_dead, r.headers,
    r.key, r.keep_key_ms, r.coalesce_key, r.group_key,
    md5(${PAYLOAD}::text)::uuid as payload_hash, ${DUE} as due_at
  from jsonb_to_recordset($1::jsonb -> 'rows') as r (
    n integer, id uuid, kind text, queue text, rank smallint, max_attempts integer, payload jsonb,
    run_at timestamptz, delay_ms bigint, on_dead jsonb, headers jsonb,
    key text, keep_key_ms bigint, coalesce_key text, group_key text)
),
-- Whoever had the key when this statement began.
before as materialized (
  select r.n, l.job_id from r join :schema.job_keys l on l.kind = r.kind and l.key = r.key
),
k as (
  insert into :schema.job_keys as l (kind, key, job_id, payload_hash, created_at, expires_at)
  select distinct on (kind, key) kind, key, id, payload_hash, :schema.clock(),
    :schema.clock() + keep_key_ms * interval '1 millisecond'
  from r where key is not null order by kind, key, n
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
          and l.job_id in (select b.job_id from before b), false))
  -- xmax is set when there was a row already.
  returning l.kind, l.key, l.job_id, l.payload_hash, l.xmax = 0 as is_new
),
-- A statement that arrives a second time, however late, finds its own id in the ledger: the job was accepted then, and may
-- have come and gone.
fresh as materialized (
  select r.* from r left join k on k.kind = r.kind and k.key = r.key left join before b on b.n = r.n
  where r.key is null or (k.job_id = r.id and (k.is_new or b.job_id <> r.id))
),
g as (
  insert into :schema.job_groups as l (name, head, tail)
  select group_key, (array_agg(id order by n))[1], count(*) from fresh where group_key is not null
  group by group_key order by group_key
  on conflict (name) do update set tail = l.tail + excluded.tail, head = coalesce(l.head, excluded.head)
  returning l.name, l.head, l.tail
),
i as (
  insert into :schema.jobs as l (id, kind, queue, rank, run_at, created_at, max_attempts, payload, on_dead, headers,
    key, coalesce_key, group_key, group_seq, hold)
  select f.id, f.kind, f.queue, f.rank, f.due_at, :schema.clock(), f.max_attempts, f.payload, f.on_dead, f.headers,
    f.key, f.coalesce_key, f.group_key,
    g.tail - count(*) over (partition by f.group_key) + row_number() over (partition by f.group_key order by f.n),
    case when f.group_key is null or g.head = f.id then 0 else 1 end
  from fresh f left join g on g.name = f.group_key
  order by f.kind, f.coalesce_key, f.n
  on conflict (kind, coalesce_key) where coalesce_key is not null and hold <> 3 do update set
    payload = case when l.state = 'running' then l.payload else excluded.payload end,
    rerun = case when l.state = 'running' then excluded.payload end,
    attempt = case when l.state = 'running' then l.attempt else 0 end,
    -- Set apart to be buried or cancelled: what is accepted now is a new life.
    hold = case when l.hold = 4 then 0 else l.hold end,
    crash_count = case when l.hold = 4 then 0 else l.crash_count end,
    cancel_requested_at = case when l.hold = 4 then null else l.cancel_requested_at end,
    run_at = case when l.state = 'running' then l.run_at else least(l.run_at, excluded.run_at) end
  returning l.id, l.kind, l.coalesce_key
)
select r.n, coalesce(k.job_id, c.id, r.id) as id,
  (coalesce(k.job_id, c.id, r.id) = r.id) as created,
  (k.job_id is not null and k.job_id <> r.id and k.payload_hash <> r.payload_hash) as conflict,
  (c.id is not null and c.id <> r.id) as coalesced
from r
left join k on k.kind = r.kind and k.key = r.key
left join i c on r.coalesce_key is not null and c.kind = r.kind and c.coalesce_key = r.coalesce_key
order by r.n`,
  });
const INSERT_SPECIAL = makeInsertSpecial("insert_special", []);
/** Row by row each would be compared with every other: ten thousand took a minute. */
const INSERT_SPECIAL_MANY = makeInsertSpecial("insert_special_many", ["enable_hashjoin = on"]);
const MANY = 50;

const FIND_EXISTING = sql`
select id from :schema.jobs where id = any($1::uuid[])
union
select id from :schema.job_history where id = any($1::uuid[])`;

function isSpecial(job: NewJob): boolean {
  return job.key !== undefined || job.group !== undefined || job.coalesceKey !== undefined;
}

/** Field by field, because payload, on_dead and headers are JSON text already. */
function asJson(job: NewJob, index: number): string {
  let text = `{"id":"${job.id}","kind":${JSON.stringify(job.kind)},"queue":${JSON.stringify(job.queue)},"rank":${job.rank},"max_attempts":${job.attempts},"payload":${job.payload}`;
  if (job.runAt !== undefined) text += `,"run_at":${JSON.stringify(job.runAt)}`;
  if (job.delayMs !== undefined) text += `,"delay_ms":${job.delayMs}`;
  if (job.onDead !== undefined) text += `,"on_dead":${job.onDead}`;
  if (job.headers !== undefined) text += `,"headers":${job.headers}`;
  if (isSpecial(job)) {
    text += `,"n":${index}`;
    if (job.key !== undefined) {
      text += `,"key":${JSON.stringify(job.key)}`;
      if (typeof job.keepKeyMs === "number") text += `,"keep_key_ms":${job.keepKeyMs}`;
    }
    if (job.coalesceKey !== undefined) text += `,"coalesce_key":${JSON.stringify(job.coalesceKey)}`;
    if (job.group !== undefined) text += `,"group_key":${JSON.stringify(job.group)}`;
  }
  return `${text}}`;
}

function areAlike(jobs: readonly NewJob[]): boolean {
  const first = jobs[0]!;
  return jobs.every(
    (job) =>
      job.kind === first.kind &&
      job.queue === first.queue &&
      job.rank === first.rank &&
      job.attempts === first.attempts &&
      job.delayMs === first.delayMs &&
      job.runAt === undefined &&
      job.onDead === undefined &&
      job.headers === undefined,
  );
}

function alikeJson(jobs: readonly NewJob[]): string {
  const { kind, queue, rank, attempts, delayMs = 0 } = jobs[0]!;
  const common = JSON.stringify({ kind, queue, rank, max_attempts: attempts, delay_ms: delayMs });
  return `${common.slice(0, -1)},"pairs":[${jobs.map((job) => `["${job.id}",${job.payload}]`).join(",")}]}`;
}

/** The lines of a COPY. JSON text has no line breaks and no tabs, but it has backslashes. */
function* alikeLines(jobs: readonly NewJob[]): Generator<string> {
  const { kind, queue, rank, attempts } = jobs[0]!;
  const common = `\t${copyText(kind)}\t${copyText(queue)}\t${rank}\t${attempts}\t`;
  let part = "";
  for (let index = 0; index < jobs.length; index += 1) {
    const { id, payload } = jobs[index]!;
    part += `${id}${common}${payload.includes("\\") ? copyText(payload) : payload}\n`;
    if (index % LINES_PER_PART < LINES_PER_PART - 1) continue;
    yield part;
    part = "";
  }
  if (part !== "") yield part;
}

export async function insertPlain(store: Store, jobs: readonly NewJob[]): Promise<Inserted[]> {
  const alike = areAlike(jobs);
  if (alike && jobs[0]!.delayMs === undefined && store.copyIn && jobs.length >= FEWEST_TO_COPY) {
    await store.copyIn(COPY_ALIKE, alikeLines(jobs));
  } else if (alike) await store.query(INSERT_ALIKE, [alikeJson(jobs)]);
  else await store.query(INSERT_PLAIN, [`[${jobs.map(asJson).join(",")}]`]);
  return jobs.map((job) => ({ id: job.id, created: true, conflict: false, coalesced: false }));
}

/** Due now, of one kind, and plain: whoever has a free slot could run them right away. */
export function canBeTaken(jobs: readonly NewJob[]): boolean {
  return jobs[0]!.delayMs === undefined && !jobs.some(isSpecial) && areAlike(jobs);
}

/** Only what `canBeTaken`. They are stored, and claimed by this holder, when it resolves. */
export async function insertTaken(
  store: Store,
  jobs: readonly NewJob[],
  holder: { token: string; workerId: string; leaseMs: number },
): Promise<ClaimedJob[]> {
  const { kind, queue, attempts, rank } = jobs[0]!;
  // In the order of their places in the lane: the lease says which is the last one.
  const taken = jobs.toSorted((one, other) => (one.id < other.id ? -1 : 1));
  const isOne = taken.length === 1;
  const given = taken.map((job) => job.payload).join(",");
  const { rows } = await store.query<{ payloads: unknown; run_us: string }>(INSERT_TAKEN, [
    taken.map((job) => job.id),
    isOne ? given : `[${given}]`,
    kind,
    queue,
    rank,
    attempts,
    holder.token,
    holder.workerId,
    holder.leaseMs,
  ]);
  const { payloads, run_us } = rows[0]!;
  return taken.map((job, index) => ({
    id: job.id,
    kind,
    queue,
    payload: isOne ? payloads : (payloads as unknown[])[index],
    attempt: 1,
    max_attempts: attempts,
    rank,
    key: null,
    group_key: null,
    last_error: null,
    run_us,
    lag_ms: 0,
  }));
}

/** At most one row per coalesce key in one call: the caller sees to that. */
export async function insertSpecial(
  store: Store,
  jobs: readonly NewJob[],
  lockTimeoutMs: number | null,
): Promise<Inserted[]> {
  // A job without any of the three may share the statement with ones that have them: it still needs its place.
  const rows = jobs.map((job, index) =>
    isSpecial(job) ? asJson(job, index) : `${asJson(job, index).slice(0, -1)},"n":${index}}`,
  );
  const timeout = lockTimeoutMs === null ? "" : `"lock_timeout":"${lockTimeoutMs}",`;
  const statement = jobs.length < MANY ? INSERT_SPECIAL : INSERT_SPECIAL_MANY;
  const { rows: inserted } = await store.query<Inserted & { n: number }>(statement, [
    `{${timeout}"rows":[${rows.join(",")}]}`,
  ]);
  return inserted.map(({ id, created, conflict, coalesced }) => ({ id, created, conflict, coalesced }));
}

export function insertJobs(store: Store, jobs: readonly NewJob[], lockTimeoutMs: number | null): Promise<Inserted[]> {
  return jobs.some(isSpecial) ? insertSpecial(store, jobs, lockTimeoutMs) : insertPlain(store, jobs);
}

/** Which of these ids are there already, live or finished: asked before an enqueue is sent again. */
export async function findExisting(store: Store, ids: readonly string[]): Promise<Set<string>> {
  const { rows } = await store.query<{ id: string }>(FIND_EXISTING, [ids]);
  return new Set(rows.map((row) => row.id));
}
