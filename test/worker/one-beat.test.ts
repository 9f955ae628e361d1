// However many jobs a process runs, of however many kinds: one statement for each beat renews all of their leases, and beats are
// a third of the shortest lease apart. Counted in the database.
import { afterEach, beforeAll, expect, test } from "vitest";
import type { Worker } from "#src/worker/worker.js";
import { makeHeldKind } from "../support/make.ts";
import { useHoldfast } from "../support/open-test.ts";

const JOBS = 8;
const SHORTEST_MS = 1_200;
const BEATS = 6;

const bench = useHoldfast("server");
let worker: Worker | undefined;
afterEach(() => worker?.stop());

interface Beat {
  seq: number;
  at: Date;
  renewed: number;
  sender: string;
}

// A row for each statement, and how many leases it renewed.
beforeAll(() =>
  bench.db.script(`
    create table public.beats (seq serial, at timestamptz not null default clock_timestamp(), renewed integer not null,
      sender text not null default current_setting('application_name'));
    create function public.log_beat() returns trigger language plpgsql as $$
      begin
        insert into public.beats (renewed)
          select count(*) from new_leases n join old_leases o using (token, lease_ms) where n.expires_at > o.expires_at
          having count(*) > 0;
        return null;
      end $$;
    create trigger log_beat after update on holdfast.leases referencing old table as old_leases new table as new_leases
      for each statement execute function public.log_beat();`),
);

async function beats(): Promise<Beat[]> {
  return (await bench.db.query<Beat>("select seq, at, renewed, sender from public.beats order by seq")).rows;
}

test(`${JOBS} running jobs of 2 kinds: each beat is one statement, every third of the shortest lease`, async () => {
  const short = makeHeldKind<number>({ lease: `${SHORTEST_MS}ms` });
  const long = makeHeldKind<number>({ lease: "4s" });
  worker = await bench.hf.work([short.kind, long.kind], { concurrency: JOBS });
  // One by one: a claim, and so a lease, for each.
  for (let n = 0; n < JOBS; n += 1) {
    const held = n % 2 === 0 ? short : long;
    await bench.hf.enqueue(held.kind, n);
    await held.started(Math.floor(n / 2) + 1);
  }
  const { rows } = await bench.db.query<{ leases: number }>("select count(*)::integer as leases from holdfast.leases");
  const leases = rows[0]!.leases;
  expect(leases).toBe(JOBS);
  // From the first beat of the thread that knew of them all: until then they may come from the main thread as well.
  const isFull = ({ renewed, sender }: Beat): boolean => renewed === leases && sender === "holdfast heartbeat";
  const timing = { timeout: 15_000, interval: 50 };
  await expect.poll(async () => (await beats()).filter(isFull).length, timing).toBeGreaterThan(1);
  const from = (await beats()).filter(isFull)[1]!.seq;
  const since = async (): Promise<Beat[]> => (await beats()).filter(({ seq }) => seq >= from);
  await expect.poll(async () => (await since()).length, timing).toBeGreaterThan(BEATS);
  const seen = await since();
  // Each of them renewed every lease: none is for a kind, or a job, of its own.
  expect(seen.map(({ renewed, sender }) => [renewed, sender])).toEqual(seen.map(() => [leases, "holdfast heartbeat"]));
  // And none came sooner than it had to. Late ones are the machine's; over all of them that cannot make them more.
  const tookMs = seen.at(-1)!.at.getTime() - seen[0]!.at.getTime();
  expect(tookMs / (seen.length - 1)).toBeGreaterThan((SHORTEST_MS / 3) * 0.85);
  expect((await beats()).filter(({ renewed }) => renewed > leases)).toEqual([]);
  short.release();
  long.release();
});
