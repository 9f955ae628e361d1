// Finds jobs by what people ask for, newest first, page by page. Only ids have an index that covers everything, so a search
// goes through a window of rows at a time, in the order of the ids (which is the order of making), and says how far it
// came: a page may be empty and still have a next one. Nothing here reads a whole table, and nothing is slow because
// much was finished.
//
// What can be found by a narrower way is: dead jobs by their own index, running ones by their leases, a kind's errors by
// theirs.
import type { Job } from "../../job/job.ts";
import type { JobStatus } from "../../job/states.ts";
import { type Routine, routine, type Store } from "../sql.ts";
import { COLUMN_TYPES, fingerprintIn, HISTORY_COLUMNS, type JobRow, LIVE_COLUMNS, liveJobs, toJob } from "./rows.ts";

export interface JobFilter {
  statuses?: readonly JobStatus[] | undefined;
  kind?: string | undefined;
  queue?: string | undefined;
  key?: string | undefined;
  group?: string | undefined;
  /** Part of the last error's name or message, in any case. */
  error?: string | undefined;
  fingerprint?: string | undefined;
  leastAttempts?: number | undefined;
  mostAttempts?: number | undefined;
  olderThanMs?: number | undefined;
  youngerThanMs?: number | undefined;
  /** Values in the payload, as text: of texts, numbers and the like, never of what has more inside. */
  payload?: readonly { path: readonly string[]; text: string }[] | undefined;
  /** Only these. */
  ids?: readonly string[] | undefined;
}

export interface Page {
  jobs: Job[];
  /** Where the next page begins; null: everything was looked at. */
  next: string | null;
}

/** How many rows one search looks at. */
const WINDOW = { live: 30_000, history: 10_000 } as const;
/** A count that goes further than this says "or more". */
export const COUNT_TO = 10_000;
/** Greater than every id. */
const TOP = "ffffffff-ffff-ffff-ffff-ffffffffffff";

// $1 statuses, $2 kind, $3 queue, $4 key, $5 group, $6 error, $7 fingerprint, $8 and $9 attempts, $10 and $11 ages, $12 payload,
// $13 ids, $14 before, $15 rows to look at, $16 limit.
const TAKES = [
  "text[]",
  "text",
  "text",
  "text",
  "text",
  "text",
  "text",
  "integer",
  "integer",
  "float8",
  "float8",
  "jsonb",
  "uuid[]",
  "uuid",
  "integer",
  "integer",
];

const MATCHES = (status: string): string => `($1 is null or ${status} = any($1)) and ($2 is null or w.kind = $2)
    and ($3 is null or w.queue = $3) and ($4 is null or w.key = $4) and ($5 is null or w.group_key = $5)
    and ($8 is null or w.attempt >= $8) and ($9 is null or w.attempt <= $9)
    and ($10 is null or w.created_at < :schema.clock() - $10 * interval '1 millisecond')
    and ($11 is null or w.created_at > :schema.clock() - $11 * interval '1 millisecond')
    and ($6 is null or strpos(lower(concat(w.last_error ->> 'name', ': ', w.last_error ->> 'message')), $6) > 0)
    and ($7 is null or ${fingerprintIn("w")} = $7)
    and ($12 is null or not exists (select 1 from jsonb_to_recordset($12) as p (path text[], text text)
      where (w.payload #>> p.path) is distinct from p.text or jsonb_typeof(w.payload #> p.path) in ('object', 'array')))`;

/** The status of a live row of which only the row is known. */
const ROW_STATUS = `case when w.state = 'dead' then 'dead'
      when w.id in (select id from light) then case when w.id in (select id from light where overdue) then 'stuck' else 'running' end
      when w.state = 'running' then case when (select max(h.expires_at) from :schema.leases h where h.token = w.token)
        < :schema.clock() then 'stuck' else 'running' end
      when w.hold in (5, 6) or w.queue in (select name from halted) then 'paused'
      when w.attempt > 0 then 'retrying' when w.run_at > :schema.clock() then 'scheduled' else 'ready' end`;

const BEFORE = `coalesce($14, '${TOP}'::uuid)`;
const newestFirst = (from: string, where: string): string =>
  `select j.* from ${from} j where ${where} and j.id < ${BEFORE} order by j.id desc limit $15`;

/** Ways to the rows, each in the order of the ids. */
const WAYS = {
  live: newestFirst(":schema.jobs", "true"),
  dead: newestFirst(":schema.jobs", "j.hold = 3"),
  error: newestFirst(":schema.jobs", `j.hold = 3 and j.kind = $2 and ${fingerprintIn("j")} = $7`),
  running: `select j.* from (select distinct u.id from (select h.job_ids from :schema.leases h order by h.expires_at limit 10000) l cross join lateral unnest(l.job_ids) as u (id)
      where u.id < ${BEFORE} order by u.id desc limit $15) r join :schema.jobs j on j.id = r.id`,
  ids: `select j.* from unnest($13) as u (id) join :schema.jobs j on j.id = u.id where u.id < ${BEFORE}`,
  history: newestFirst(":schema.job_history", "true"),
} as const;
type Way = keyof typeof WAYS;

const LIGHT = `light as materialized (
    select unnest(l.job_ids) as id, l.expires_at < :schema.clock() as overdue from :schema.leases l where l.light
  ),
  halted as materialized (select q.name from :schema.queues q where q.paused_at is not null)`;

const matching = (way: Way, columns: string): string => {
  const status = way === "history" ? "w.state::text" : ROW_STATUS;
  return `select ${columns} from (${WAYS[way]}) w where ${MATCHES(status)}`;
};

/** A hash join is how the few that were found meet their leases; which way the rows are read stays pinned. */
const settings = ["enable_hashjoin = on"];

const finder = (way: Way): Routine =>
  routine({
    name: `find_${way}`,
    takes: TAKES,
    gives: COLUMN_TYPES,
    settings,
    body:
      way === "history"
        ? `select ${HISTORY_COLUMNS} from (${matching(way, "w.*")} order by w.id desc limit $16) h order by id desc`
        : `with ${LIGHT},
  found as materialized (${matching(way, "w.*")} order by w.id desc limit $16)
  select ${LIVE_COLUMNS} from ${liveJobs("found")} order by id desc`,
  });

const counter = (way: Way): Routine =>
  routine({
    name: `count_${way}`,
    takes: TAKES,
    gives: "found integer",
    settings,
    body: `with ${LIGHT}
  select count(*)::integer from (${matching(way, "1")} limit $16) c`,
  });

const FIND: Readonly<Record<Way, Routine>> = {
  live: finder("live"),
  dead: finder("dead"),
  error: finder("error"),
  running: finder("running"),
  ids: finder("ids"),
  history: finder("history"),
};

const COUNT: Readonly<Record<Way, Routine>> = {
  live: counter("live"),
  dead: counter("dead"),
  error: counter("error"),
  running: counter("running"),
  ids: counter("ids"),
  history: counter("history"),
};

/** The last of the rows that a search looked at, if there are as many. */
const floorOf = (way: Way): Routine =>
  routine({
    name: `floor_${way}`,
    takes: ["uuid", "integer"],
    gives: "id uuid",
    body: `select j.id from :schema.${way === "history" ? "job_history" : "jobs"} j where ${way === "dead" ? "j.hold = 3 and " : ""}j.id < coalesce($1, '${TOP}'::uuid)
  order by j.id desc offset $2 - 1 limit 1`,
  });

const FLOOR: Partial<Record<Way, Routine>> = {
  live: floorOf("live"),
  dead: floorOf("dead"),
  history: floorOf("history"),
};

const RUNNING: readonly JobStatus[] = ["running", "stuck"];
const ENDED: readonly JobStatus[] = ["done", "cancelled"];

function waysFor({ statuses, kind, fingerprint, ids }: JobFilter): Way[] {
  if (ids) return ["ids"];
  const wanted = statuses ?? null;
  const live = wanted?.filter((status) => !ENDED.includes(status)) ?? null;
  const ways: Way[] = [];
  if (live === null || live.length > 0) ways.push(liveWay(live, kind, fingerprint));
  if (wanted === null || wanted.some((status) => ENDED.includes(status))) ways.push("history");
  return ways;
}

function liveWay(live: readonly JobStatus[] | null, kind?: string, fingerprint?: string): Way {
  if (live?.every((status) => status === "dead")) {
    return kind !== undefined && fingerprint !== undefined ? "error" : "dead";
  }
  return live?.every((status) => RUNNING.includes(status)) ? "running" : "live";
}

function valuesOf(filter: JobFilter, before: string | null, window: number, limit: number): unknown[] {
  return [
    filter.statuses ?? null,
    filter.kind ?? null,
    filter.queue ?? null,
    filter.key ?? null,
    filter.group ?? null,
    filter.error?.toLowerCase() ?? null,
    filter.fingerprint ?? null,
    filter.leastAttempts ?? null,
    filter.mostAttempts ?? null,
    filter.olderThanMs ?? null,
    filter.youngerThanMs ?? null,
    filter.payload === undefined || filter.payload.length === 0 ? null : JSON.stringify(filter.payload),
    filter.ids ?? null,
    before,
    window,
    limit,
  ];
}

const windowOf = (way: Way): number => (way === "history" ? WINDOW.history : WINDOW.live);

/** `before`: only jobs older than this id. */
export async function findJobs(store: Store, filter: JobFilter, before: string | null, limit: number): Promise<Page> {
  // By id: a job that ends between the two looks is in both, and the second is right.
  const found = new Map<string, Job>();
  // Down to here all of them were looked at.
  let floor: string | null = null;
  for (const way of waysFor(filter)) {
    const window = windowOf(way);
    const { rows } = await store.query<JobRow>(FIND[way], valuesOf(filter, before, window, limit + 1));
    for (const row of rows) found.set(row.id, toJob(row));
    const end = rows.length > limit ? rows[limit - 1]!.id : await endOfWindow(store, way, before, window);
    if (end !== null && (floor === null || end > floor)) floor = end;
  }
  const reached = [...found.values()].filter(({ id }) => floor === null || id >= floor);
  reached.sort((a, b) => (a.id < b.id ? 1 : -1));
  const jobs = reached.slice(0, limit);
  return { jobs, next: reached.length > limit ? jobs.at(-1)!.id : floor };
}

async function endOfWindow(store: Store, way: Way, before: string | null, window: number): Promise<string | null> {
  const statement = FLOOR[way];
  if (!statement) return null;
  return (await store.query<{ id: string }>(statement, [before, window])).rows[0]?.id ?? null;
}

export interface Counted {
  count: number;
  /** There may be more: the count stopped here. */
  more: boolean;
}

const COUNT_WINDOW = 50_000;

export async function countJobs(store: Store, filter: JobFilter): Promise<Counted> {
  let count = 0;
  let more = false;
  for (const way of waysFor(filter)) {
    const values = valuesOf(filter, null, COUNT_WINDOW, COUNT_TO);
    const { rows } = await store.query<{ found: number }>(COUNT[way], values);
    count += rows[0]!.found;
    more ||= (await endOfWindow(store, way, null, COUNT_WINDOW)) !== null;
  }
  return count >= COUNT_TO ? { count: COUNT_TO, more: true } : { count, more };
}
