// The workers, and every lease with the worker that holds it, for people and screens.
import { asMillis, sql, type Store } from "../sql.ts";

/** One lease: which worker, which jobs, and when it ends. */
export interface Lease {
  /** The jobs that run under it: at most 50 of them. */
  jobIds: string[];
  /** Of these jobs, each once. */
  kinds: string[];
  leaseMs: number;
  expiresAt: Date;
  /** By the database's clock; negative: overdue. */
  expiresInMs: number;
  /** A suspect, run alone in its process. */
  alone: boolean;
}

/** A worker of any process. */
export interface WorkerInfo {
  id: string;
  name: string;
  kinds: string[];
  concurrency: number;
  running: number;
  startedAt: Date;
  beatAt: Date;
  silentMs: number;
  /** Since when it takes no more jobs, and who asked for that. */
  drainAskedAt: Date | null;
  drainAskedBy: string | null;
  /** Since when it is ending; who asked is `drainAskedBy`. */
  stopAskedAt: Date | null;
  leases: Lease[];
}

/** The workers of all processes, and what they hold. */
export interface WorkerList {
  workers: WorkerInfo[];
  /** Leases whose worker is not there any more. */
  orphans: Lease[];
}

const MOST_LEASES = 200;
const MOST_IDS = 50;

const WORKERS = sql`
select id, name, kinds, concurrency, running, started_at, beat_at, drain_asked_at, drain_asked_by, stop_asked_at,
  greatest(0, round(${asMillis(":schema.clock() - beat_at")}))::float8 as silent_ms
from :schema.workers order by started_at, id limit 1000`;

/**
 * A lease's row stays until all its jobs are settled: only those that still run are shown. The rows of a light lease's
 * jobs do not say that they run; they go when they are settled.
 */
const LEASES = sql`
select l.worker_id, l.lease_ms, l.expires_at, l.alone, r.job_ids, r.kinds,
  round(${asMillis("l.expires_at - :schema.clock()")})::float8 as expires_in_ms
from (select * from :schema.leases order by expires_at limit ${MOST_LEASES}) l cross join lateral (
  select array_agg(found.id) as job_ids, array_agg(distinct found.kind) as kinds from (
    select j.id, j.kind from unnest(l.job_ids) as u (id) cross join lateral (
      select j.id, j.kind from :schema.jobs j
      where j.id = u.id and (l.light or (j.state = 'running' and j.token = l.token))
    ) j limit ${MOST_IDS}
  ) found
) r
where r.job_ids is not null
order by l.expires_at`;

interface WorkerRow {
  id: string;
  name: string;
  kinds: string[];
  concurrency: number;
  running: number;
  started_at: Date;
  beat_at: Date;
  silent_ms: number;
  drain_asked_at: Date | null;
  drain_asked_by: string | null;
  stop_asked_at: Date | null;
}

interface LeaseRow {
  worker_id: string;
  lease_ms: number;
  expires_at: Date;
  alone: boolean;
  job_ids: string[];
  kinds: string[];
  expires_in_ms: number;
}

export async function listWorkers(store: Store): Promise<WorkerList> {
  const [{ rows: workers }, { rows: leases }] = [
    await store.query<WorkerRow>(WORKERS),
    await store.query<LeaseRow>(LEASES),
  ];
  const known = new Set(workers.map((worker) => worker.id));
  const isWhole = leases.length < MOST_LEASES;
  /** What a worker said with its last beat is some seconds old; its leases are what counts, if all of them were read. */
  const runningIn = ({ id, running }: WorkerRow): number => {
    const held = leases.filter((lease) => lease.worker_id === id);
    return isWhole && held.every((lease) => lease.job_ids.length < MOST_IDS)
      ? held.reduce((sum, lease) => sum + lease.job_ids.length, 0)
      : running;
  };
  return {
    workers: workers.map((row) => ({
      id: row.id,
      name: row.name,
      kinds: row.kinds,
      concurrency: row.concurrency,
      running: runningIn(row),
      startedAt: row.started_at,
      beatAt: row.beat_at,
      silentMs: row.silent_ms,
      drainAskedAt: row.drain_asked_at,
      drainAskedBy: row.drain_asked_by,
      stopAskedAt: row.stop_asked_at,
      leases: leases.filter((lease) => lease.worker_id === row.id).map(toLease),
    })),
    orphans: leases.filter((lease) => !known.has(lease.worker_id)).map(toLease),
  };
}

function toLease(row: LeaseRow): Lease {
  return {
    jobIds: row.job_ids,
    kinds: row.kinds,
    leaseMs: row.lease_ms,
    expiresAt: row.expires_at,
    expiresInMs: row.expires_in_ms,
    alone: row.alone,
  };
}
