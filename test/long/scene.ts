// What tests of long jobs share: kinds that one worker runs, a takeover arranged by hand, a log of renewals.
import { afterAll, beforeAll } from "vitest";
import { type AnyJobKind, defineJob, type JobKind, type JobOptions } from "#src/job/define-job.js";
import { expireIfOverdue } from "#src/store/janitor/expire-leases.js";
import type { DueRuns } from "#src/testing/index.js";
import type { Worker } from "#src/worker/worker.js";
import { uniqueName } from "../support/make.ts";
import type { Bench } from "../support/open-test.ts";
import { type Child, type ChildConfig, spawnChild, startChild } from "../support/processes.ts";

export interface Kinds {
  /** A kind of its own, which is worked on from now on, one job at a time. Its lease is always the default. */
  makeKind<Payload = unknown, Result = unknown>(
    options?: Partial<JobOptions<Payload, Payload, Result>>,
  ): JobKind<Payload, Payload, Result | undefined>;
  /** Waits until nothing of these kinds is open, and tells how their runs ended since it was asked last. */
  runDue(kinds: readonly AnyJobKind[]): Promise<DueRuns>;
}

/**
 * One worker for all tests of a describe: starting one costs more than most of them. It knows a number of kinds from
 * the start, and each that a test makes takes the place of one of those.
 */
export function useKinds(bench: Bench, most = 80): Kinds {
  const none = defineJob("none", { run: () => undefined });
  const places = Array.from({ length: most }, () => ({ name: uniqueName("long"), kind: none as AnyJobKind }));
  const counts = new Map<string, DueRuns>();
  const zero = (): DueRuns => ({ runs: 0, done: 0, retrying: 0, snoozed: 0, dead: 0, cancelled: 0 });
  const ends = {
    "job.claimed": "runs",
    "job.done": "done",
    "job.retrying": "retrying",
    "job.dead": "dead",
    "job.cancelled": "cancelled",
  } as const;
  let taken = 0;
  let worker: Worker | undefined;

  beforeAll(async () => {
    for (const [event, count] of Object.entries(ends) as [keyof typeof ends, keyof DueRuns][]) {
      bench.hf.on(event, ({ kind }) => {
        const counted = counts.get(kind);
        if (counted) counted[count] += 1;
      });
    }
    // What the worker asks of a kind while it runs is asked of the one that took its place.
    const live = places.map(
      (place) =>
        new Proxy({} as AnyJobKind, {
          get: (_, name) =>
            name === "kind" ? place.name : name === "leaseMs" ? none.leaseMs : Reflect.get(place.kind, name),
        }),
    );
    worker = await bench.hf.work(live, { concurrency: 1, poll: "100ms" });
  });
  afterAll(() => worker?.stop());

  return {
    makeKind<Payload, Result>(options: Partial<JobOptions<Payload, Payload, Result>> = {}) {
      const place = places[taken++];
      if (!place) throw new Error(`More than ${most} kinds: ask useKinds() for more.`);
      const kind = defineJob<Payload, Payload, Result | undefined>(place.name, { run: () => undefined, ...options });
      place.kind = kind;
      counts.set(place.name, zero());
      return kind;
    },
    async runDue(kinds) {
      const names = kinds.map(({ kind }) => kind);
      await until("nothing is open", async () => {
        const { rows } = await bench.db.query(
          "select 1 from holdfast.jobs where kind = any($1) and state <> 'dead' limit 1",
          [names],
        );
        return rows.length === 0 && worker?.running === 0;
      });
      const total = zero();
      for (const name of names) {
        for (const [count, value] of Object.entries(counts.get(name)!)) total[count as keyof DueRuns] += value;
        counts.set(name, zero());
      }
      return total;
    },
  };
}

/**
 * The job's lease runs out at this moment, as if its worker had been silent, and the job is due at once. It is not kept
 * for an empty process, so that its next run can begin beside the one that does not know yet.
 */
export async function takeAway(bench: Bench, id: string): Promise<void> {
  await bench.store.transaction(async (store, tx) => {
    await tx.query(
      "update holdfast.leases set expires_at = holdfast.clock() - interval '1 second' where $1::uuid = any(job_ids)",
      [id],
    );
    const expired = await expireIfOverdue(store, { limit: 100, seenForMs: Infinity, atOnce: true });
    if (!expired.some((job) => job.id === id)) throw new Error(`The job ${id} could not be taken away.`);
    await tx.query("update holdfast.jobs set hold = 0 where id = $1", [id]);
  });
}

/** From now on every renewal of a lease is written down. Call it once per database. */
export async function logRenewals(bench: Bench): Promise<void> {
  await bench.db.script(`
    create table public.renewals (seq serial, at timestamptz not null default clock_timestamp(), token text not null);
    create function public.log_renewal() returns trigger language plpgsql as $$
      begin insert into public.renewals (token) values (new.token::text); return null; end $$;
    create trigger log_renewal after update on holdfast.leases for each row
      when (new.expires_at > old.expires_at) execute function public.log_renewal();`);
}

export async function renewalsOf(bench: Bench, token: string): Promise<number> {
  const { rows } = await bench.db.query<{ count: number }>(
    "select count(*)::integer as count from public.renewals where token = $1",
    [token],
  );
  return rows[0]!.count;
}

export interface LeaseRow {
  token: string;
  lease_ms: number;
  left_ms: number;
}

export async function leaseOf(bench: Bench, token: string): Promise<LeaseRow | undefined> {
  const { rows } = await bench.db.query<LeaseRow>(
    `select token, lease_ms, (extract(epoch from expires_at - holdfast.clock()) * 1000)::float8 as left_ms
     from holdfast.leases where token = $1`,
    [token],
  );
  return rows[0];
}

export const longChild = (script: string, config: ChildConfig): Promise<Child> => startChild(path(script), config);

/** Without waiting until it is ready. */
export const spawnLongChild = (script: string, config: ChildConfig): Child => spawnChild(path(script), config);

/** As seen from the folder that processes.ts starts children from. */
const path = (script: string): string => `../../long/children/${script}`;

export const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Looks until it is so. For what has no event: rows that another process writes. */
export async function until(what: string, isSo: () => Promise<boolean>, timeoutMs = 20_000): Promise<void> {
  const end = Date.now() + timeoutMs;
  while (!(await isSo())) {
    if (Date.now() > end) throw new Error(`Not within ${timeoutMs} ms: ${what}.`);
    await sleep(20);
  }
}
