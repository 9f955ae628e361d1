// What tests of long jobs share: a takeover arranged by hand, a log of renewals, the rows a handler wrote.
import type { Bench } from "../support/open-test.ts";
import { expireIfOverdue } from "#src/store/janitor/expire-leases.js";
import { spawnChild, startChild, type Child, type ChildConfig } from "../support/processes.ts";

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
