// What every crash test needs: a database with the trace table that handlers write to, a client that only enqueues and
// looks, workers as child processes, and the questions asked at the end.
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "vitest";
import { Client } from "pg";
import { defineJob, type EnqueueOptions, type Holdfast, open } from "#src/index.js";
import { assertSound } from "../support/assert-sound.ts";
import { createMigratedDatabase } from "../support/database.ts";
import {
  type Child,
  type ChildConfig,
  killChildren,
  startChild,
  supervise,
  type Supervised,
} from "../support/processes.ts";

export const SCHEMA = "hf_crash";

export interface WorkPayload {
  n: number;
  ms?: number;
  whileFile?: string;
  slowOn?: string[];
  thenMs?: number;
  die?: "abort" | "kill";
  failUpTo?: number;
  stubborn?: boolean;
  spin?: number;
  trace?: boolean;
  progress?: boolean;
  mute?: boolean;
}

/** Only enqueued here: the handler is the children's. */
export const work = defineJob<WorkPayload>("work", { attempts: 3, run: () => undefined });

export interface Ended {
  id: string;
  n: number;
  state: string;
  attempt: number;
  claim_count: number;
  token: string;
  result: { by: string; token: string } | null;
  progress: { note: string } | null;
}

export interface Trace {
  at: Date;
  job: string;
  token: string;
  worker: string;
  what: string;
  attempt: number;
  n: number;
  grp: string | null;
}

export interface Scene {
  readonly url: string;
  readonly hf: Holdfast;
  readonly sql: Client;
  worker(config: ChildConfig): Promise<Child>;
  /** One that is started again whenever it dies. */
  supervised(config: ChildConfig): Supervised;
  enqueue(payload: WorkPayload, options?: EnqueueOptions): Promise<string>;
  enqueueMany(payloads: readonly WorkPayload[]): Promise<string[]>;
  /** Finished jobs, in the order of n. */
  ended(): Promise<Ended[]>;
  traces(): Promise<Trace[]>;
  /** Waits until nothing is pending or running. */
  drained(timeoutMs?: number): Promise<void>;
  /** Waits until no job has crashed alone: three kills in a row that meet the same job would rightly bury it. */
  forgiven(): Promise<void>;
  /** Failed attempts that were charged to anybody. */
  charged(): Promise<{ n: number; outcome: string }[]>;
  close(): Promise<void>;
}

/** `url`: an existing database instead of a fresh one; it is not dropped. */
export async function openScene(url?: string): Promise<Scene> {
  const database = url === undefined ? await createMigratedDatabase(SCHEMA) : { url, drop: async () => {} };
  const hf = await open({ database: database.url, schema: SCHEMA });
  let sql = new Client({ connectionString: database.url });
  const connect = async (): Promise<void> => {
    sql = new Client({ connectionString: database.url });
    sql.on("error", () => {});
    await sql.connect();
  };
  await connect();
  await sql.query(
    `create table if not exists trace (seq bigserial, at timestamptz not null default clock_timestamp(), job uuid,
       token text, worker text, what text, attempt integer, n integer, grp text)`,
  );
  const ask = async <Row>(text: string): Promise<Row[]> => {
    try {
      return (await sql.query(text)).rows as Row[];
    } catch {
      await sql.end().catch(() => {});
      await connect();
      return (await sql.query(text)).rows as Row[];
    }
  };
  const places = { url: database.url, schema: SCHEMA };
  const scene: Scene = {
    url: database.url,
    hf,
    get sql() {
      return sql;
    },
    worker: (config) => startChild("worker.mjs", { ...places, ...config }),
    supervised: (config) => supervise("worker.mjs", { ...places, ...config }),
    async enqueue(payload, options) {
      return (await hf.enqueue(work, payload, options)).id;
    },
    async enqueueMany(payloads) {
      return (
        await hf.enqueueMany(
          work,
          payloads.map((payload) => ({ payload })),
        )
      ).map((job) => job.id);
    },
    ended: () =>
      ask(
        `select id, (payload ->> 'n')::integer as n, state, attempt, claim_count, token, result, progress
         from ${SCHEMA}.job_history order by n`,
      ),
    traces: () => ask("select at, job, token, worker, what, attempt, n, grp from trace order by seq"),
    async drained(timeoutMs = 60_000) {
      const end = Date.now() + timeoutMs;
      for (;;) {
        const rows = await ask<{ id: string; state: string; hold: number; payload: WorkPayload }>(
          `select id, state, hold, payload from ${SCHEMA}.jobs where state <> 'dead' limit 5`,
        ).catch(() => undefined);
        if (rows?.length === 0) return;
        if (Date.now() > end) throw new Error(`Still open after ${timeoutMs} ms: ${JSON.stringify(rows)}`);
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    },
    async forgiven() {
      while ((await ask(`select 1 from ${SCHEMA}.jobs where crash_count > 0 limit 1`)).length > 0) {
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    },
    charged: () =>
      ask(
        `select (coalesce(h.payload, j.payload) ->> 'n')::integer as n, a.outcome from ${SCHEMA}.attempts a
         left join ${SCHEMA}.job_history h on h.id = a.job_id left join ${SCHEMA}.jobs j on j.id = a.job_id`,
      ),
    async close() {
      await killChildren();
      try {
        await assertSound(database.url, SCHEMA);
      } finally {
        await hf.close();
        await sql.end().catch(() => {});
        await database.drop();
      }
    },
  };
  return scene;
}

/** A file that jobs can be told to wait for the end of. */
export async function makeFlag(): Promise<{ path: string; remove(): Promise<void> }> {
  const folder = await mkdtemp(join(tmpdir(), "holdfast-flag-"));
  const path = join(folder, "flag");
  await writeFile(path, "");
  return { path, remove: () => rm(folder, { recursive: true, force: true }) };
}

/** Every one of `count` jobs is done, once, on its first attempt. */
export function expectAllDone(ended: readonly Ended[], count: number): void {
  expect(ended.map((job) => job.n)).toEqual(Array.from({ length: count }, (_, n) => n));
  expect(ended.filter((job) => job.state !== "done" || job.attempt !== 1)).toEqual([]);
  // The result that was kept is that of the run whose token was accepted.
  expect(ended.filter((job) => job.result?.token !== job.token)).toEqual([]);
}
