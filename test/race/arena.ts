// What every race needs: an empty schema in a database of its own, a pooled store, sessions that hold locks, and rows
// made by the product's own verbs. `close()` checks that all is sound before it drops the database.
import { randomUUID } from "node:crypto";
import { expect } from "vitest";
import { openPostgres } from "#src/db/postgres.js";
import { randomToken, uuidv7 } from "#src/shared/uuid.js";
import { type ClaimedJob, claimIds, claimLane, type Holder } from "#src/store/jobs/claim.js";
import { insertJobs, type NewJob } from "#src/store/jobs/insert.js";
import { type EndedRun, settleRuns } from "#src/store/jobs/settle.js";
import { makeStore, type Store } from "#src/store/sql.js";
import { assertSound } from "../support/assert-sound.ts";
import { createMigratedDatabase } from "../support/database.ts";
import { openSession, type Session, untilBlocks, watch } from "../support/locks.ts";

export const SCHEMA = "hf_race";
export const LEASE_MS = 30_000;
/** The server of a test run is younger than a lease; `atOnce` says that this is no reason to wait. */
export const EXPIRE = { limit: 100, seenForMs: Infinity, atOnce: true };
export const NIL_ID = "00000000-0000-0000-0000-000000000000";

/** A claimed job with the token it was claimed under. */
export interface HeldRun {
  id: string;
  token: string;
  job: ClaimedJob;
}

export interface JobRow {
  id: string;
  state: string;
  hold: number;
  attempt: number;
  crash_count: number;
  claim_count: number;
  token: string | null;
  payload: unknown;
  rerun: unknown;
  cancel_requested_at: Date | null;
  group_seq: string | null;
}

export interface Arena {
  readonly url: string;
  readonly store: Store;
  /** Looks, and never holds a lock. */
  readonly watcher: Session;
  session(): Promise<Session>;
  /** Waits until somebody waits for this session. */
  blocks(holder: Session, count?: number): Promise<void>;
  insert(jobs: readonly Partial<NewJob>[], store?: Store): Promise<string[]>;
  claim(ids: readonly string[], store?: Store): Promise<HeldRun[]>;
  /** One job, claimed. */
  running(job?: Partial<NewJob>): Promise<HeldRun>;
  /** One job, claimed, whose lease is over. */
  overdue(job?: Partial<NewJob>): Promise<HeldRun>;
  dead(job?: Partial<NewJob>): Promise<string>;
  live(id: string): Promise<JobRow | undefined>;
  history(id: string): Promise<{ state: string; token: string | null; result: unknown }[]>;
  leases(): Promise<{ token: string; job_ids: string[]; cancel_ids: string[] }[]>;
  sound(): Promise<void>;
  /** Nothing waits, nothing runs, no group is left. */
  drained(): Promise<void>;
  close(): Promise<void>;
}

export const newJob = (job: Partial<NewJob> = {}): NewJob => ({
  id: uuidv7(),
  kind: "race",
  queue: "default",
  rank: 0,
  attempts: 5,
  payload: "{}",
  ...(job.key === undefined ? {} : { keepKeyMs: 86_400_000 }),
  ...job,
});

export const holder = (kinds: readonly string[] = ["race"]): Holder => ({
  token: randomToken(),
  workerId: randomUUID(),
  leases: JSON.stringify(kinds.map((kind) => ({ kind, lease_ms: LEASE_MS }))),
});

export const lane = (kind = "race", rank = 0): { kind: string; rank: number; fromUs: string; fromId: string } => ({
  kind,
  rank,
  fromUs: "0",
  fromId: NIL_ID,
});

export const ended = (run: HeldRun, outcome: EndedRun["outcome"], more: Partial<EndedRun> = {}): EndedRun => ({
  id: run.id,
  token: run.token,
  keepMs: 86_400_000,
  keepEndedMs: 86_400_000,
  outcome,
  delayMs: 0,
  ...(outcome === "retry" || outcome === "dead" ? { error: { name: "Error", message: "as the test wants it" } } : {}),
  group: run.job.group_key,
  ...more,
});

export async function openArena(): Promise<Arena> {
  const database = await createMigratedDatabase(SCHEMA);
  const db = await openPostgres({ url: database.url, poolSize: 20 });
  const store = makeStore(db, SCHEMA);
  const sessions: Session[] = [];
  const session = async (): Promise<Session> => {
    const made = await openSession(database.url);
    sessions.push(made);
    return made;
  };
  const watcher = await session();

  const arena: Arena = {
    url: database.url,
    store,
    watcher,
    session,
    blocks: (holding, count) => untilBlocks(watcher, holding, count),
    async insert(jobs, on = store) {
      return (await insertJobs(on, jobs.map(newJob), null)).map((job) => job.id);
    },
    async claim(ids, on = store) {
      const by = holder();
      const jobs = await claimIds(on, by, ids, ["race"], ids.length);
      return jobs.map((job) => ({ id: job.id, token: by.token, job }));
    },
    async running(job = {}) {
      const [id] = await arena.insert([job]);
      const [run] = await arena.claim([id!]);
      return run!;
    },
    async overdue(job = {}) {
      const run = await arena.running(job);
      await watcher.query(`update ${SCHEMA}.leases set expires_at = now() - interval '1 second' where token = $1`, [
        run.token,
      ]);
      return run;
    },
    async dead(job = {}) {
      const run = await arena.running(job);
      await settleRuns(store, [ended(run, "dead", { error: { name: "Error", message: "made dead" } })]);
      return run.id;
    },
    async live(id) {
      const { rows } = await watcher.query<JobRow>(`select * from ${SCHEMA}.jobs where id = $1`, [id]);
      return rows[0];
    },
    async history(id) {
      const { rows } = await watcher.query<{ state: string; token: string | null; result: unknown }>(
        `select state, token, result from ${SCHEMA}.job_history where id = $1`,
        [id],
      );
      return rows;
    },
    async leases() {
      const { rows } = await watcher.query<{ token: string; job_ids: string[]; cancel_ids: string[] }>(
        `select token, job_ids, cancel_ids from ${SCHEMA}.leases`,
      );
      return rows;
    },
    async sound() {
      await assertSound(db, SCHEMA);
    },
    async drained() {
      await arena.sound();
      const { rows } = await watcher.query(
        `select (select count(*) from ${SCHEMA}.jobs where state <> 'dead')::integer as open,
           (select count(*) from ${SCHEMA}.job_groups)::integer as groups`,
      );
      expect(rows).toEqual([{ open: 0, groups: 0 }]);
    },
    async close() {
      try {
        await arena.sound();
      } finally {
        await Promise.all(sessions.map((made) => made.close()));
        await db.close();
        await database.drop();
      }
    },
  };
  return arena;
}

/** Everything due in a lane, through the ordinary claim. */
export async function claimAll(store: Store, limit = 1_000): Promise<HeldRun[]> {
  const by = holder();
  const jobs = await claimLane(store, by, lane(), limit);
  return jobs.map((job) => ({ id: job.id, token: by.token, job }));
}

/**
 * Starts a call that gives up after a short wait for a lock, and comes back when it is seen waiting for `holding`. What
 * it gives up with before it was seen is not counted: it is started again.
 */
export async function startBlocked<T>(
  arena: Arena,
  holding: Session,
  start: () => Promise<T>,
  otherwise: T,
): Promise<{ result: Promise<T> }> {
  for (;;) {
    const call = watch(unlessLocked(start(), otherwise));
    const isSeen = await Promise.race([arena.blocks(holding).then(() => true), call.promise.then(() => false)]);
    if (isSeen) return { result: call.promise };
  }
}

/** A call that may run into its own short lock timeout counts as refused. */
export async function unlessLocked<T>(call: Promise<T>, otherwise: T): Promise<T> {
  try {
    return await call;
  } catch (error) {
    expect(error).toMatchObject({ code: "55P03" });
    return otherwise;
  }
}
