// The lease says that the process is alive, and nothing else: it is renewed for as long as a job takes, and given up
// when the job is over. On a real PostgreSQL, with a second client that would take over whatever is let go.
import { afterEach, beforeAll, describe, expect, test } from "vitest";
import { defineJob } from "#src/job/define-job.js";
import { startBeats, type LeaseSource } from "#src/worker/beater.js";
import { beatIfHeld, type BeatResult, type LeaseId } from "#src/store/jobs/beat.js";
import type { Worker } from "#src/worker/worker.js";
import { waitForEvent } from "#src/testing/index.js";
import { collect, ended, nextOf } from "../support/events.ts";
import { caught, makeGate, makeHeldKind, makeKind } from "../support/make.ts";
import { openSession } from "../support/locks.ts";
import { useHoldfast } from "../support/open-test.ts";
import { leaseOf, logRenewals, renewalsOf, sleep, takeAway, until } from "./scene.ts";

const bench = useHoldfast("server");
beforeAll(() => logRenewals(bench));
const workers: Worker[] = [];
afterEach(async () => {
  await Promise.all(workers.splice(0).map((worker) => worker.stop()));
});

describe("a lease", () => {
  test("is renewed while the job computes: a job 8 times as long as its lease completes once, without a retry", async () => {
    const rival = await bench.another();
    const tokens: string[] = [];
    const kind = makeKind<null>({
      lease: "500ms",
      async run(job) {
        tokens.push(job.token);
        await sleep(8 * 500);
        return { renewals: await renewalsOf(bench, job.token), aborted: job.signal.aborted };
      },
    });
    workers.push(await bench.hf.work([kind]), await rival.work([kind]));
    const { id } = await bench.hf.enqueue(kind, null);
    const job = await ended(bench.hf, id);
    expect(job).toMatchObject({ state: "done", attempt: 1, claimCount: 1, result: { aborted: false } });
    expect((job.result as { renewals: number }).renewals).toBeGreaterThanOrEqual(8);
    expect(tokens).toHaveLength(1);
    expect(await bench.hf.jobs.attempts(id)).toEqual([]);
  });

  test("is not renewed after the job is over, and its row goes", async () => {
    const held = makeHeldKind<null>({ lease: "500ms" });
    workers.push(await bench.hf.work([held.kind]));
    const { id } = await bench.hf.enqueue(held.kind, null);
    const { token } = await held.started();
    await until("a renewal", async () => (await renewalsOf(bench, token)) > 0);
    held.release();
    await ended(bench.hf, id);
    const renewals = await renewalsOf(bench, token);
    await sleep(3 * 500);
    expect(await renewalsOf(bench, token)).toBe(renewals);
    expect(await leaseOf(bench, token)).toBeUndefined();
  });

  test("is as long as its kind says, from the claim on: 30s by default, and a short one is not rounded to nothing", async () => {
    const usual = makeHeldKind();
    const long = makeHeldKind({ lease: "10m" });
    const short = makeHeldKind({ lease: "100ms" });
    const kinds = [usual, long, short];
    workers.push(await bench.hf.work(kinds.map(({ kind }) => kind)));
    for (const { kind } of kinds) await bench.hf.enqueue(kind, null);
    const found: number[] = [];
    for (const held of kinds) {
      const { token } = await held.started();
      const { rows } = await bench.db.query<{ lease_ms: number; ms: number }>(
        `select l.lease_ms, (extract(epoch from l.expires_at - j.started_at) * 1000)::float8 as ms
         from holdfast.leases l join holdfast.jobs j on j.token = l.token
         where l.token = $1 and l.lease_ms = $2 and j.id = any(l.job_ids)`,
        [token, held.kind.leaseMs],
      );
      found.push(rows[0]!.lease_ms);
      expect(rows[0]!.ms).toBeGreaterThanOrEqual(held.kind.leaseMs);
    }
    expect(found).toEqual([30_000, 600_000, 100]);
    for (const held of kinds) held.release();
  });

  test.each(["0s", "99ms", 0, -1, "-5s"])("of %s is refused when the kind is defined", async (lease) => {
    const define = (): unknown => defineJob("embed", { lease: lease as "1s", run: () => undefined });
    expect(await caught(define)).toMatchObject({ code: "HOLDFAST_OPTION_INVALID" });
  });

  test("below a second holds as well", async () => {
    const rival = await bench.another();
    let runs = 0;
    const kind = makeKind<null>({
      lease: "600ms",
      async run() {
        runs += 1;
        await sleep(5 * 600);
      },
    });
    workers.push(await bench.hf.work([kind]), await rival.work([kind]));
    const { id } = await bench.hf.enqueue(kind, null);
    expect(await ended(bench.hf, id)).toMatchObject({ state: "done", attempt: 1, claimCount: 1 });
    expect(runs).toBe(1);
  });

  test("a chunk's commit renews it", async () => {
    const left: (number | undefined)[] = [];
    const kind = makeKind<null>({
      lease: "20s",
      async run(job) {
        for await (const chunk of job.chunks("embed", ["a"])) {
          await bench.db.query(
            "update holdfast.leases set expires_at = holdfast.clock() + interval '5 seconds' where token = $1",
            [job.token],
          );
          left.push((await leaseOf(bench, job.token))?.left_ms);
          await chunk.save();
          left.push((await leaseOf(bench, job.token))?.left_ms);
        }
      },
    });
    workers.push(await bench.hf.work([kind]));
    const { id } = await bench.hf.enqueue(kind, null);
    await ended(bench.hf, id);
    expect(left[0]).toBeLessThanOrEqual(5_000);
    expect(left[1]).toBeGreaterThan(15_000);
  });
});

describe("a beat", () => {
  async function heldLease(leaseMs: number): Promise<{ lease: LeaseId; id: string; release(): void }> {
    const held = makeHeldKind<null>({ lease: `${leaseMs}ms` });
    workers.push(await bench.hf.work([held.kind]));
    const { id } = await bench.hf.enqueue(held.kind, null);
    const { token } = await held.started();
    return { lease: { token, leaseMs }, id, release: held.release };
  }

  test("makes the lease last for its whole length again", async () => {
    const { lease, release } = await heldLease(60_000);
    await bench.db.query(
      "update holdfast.leases set expires_at = holdfast.clock() + interval '1 second' where token = $1",
      [lease.token],
    );
    const [result] = await beatIfHeld(bench.store, [lease], [], 5_000);
    expect(result).toMatchObject({ token: lease.token, state: "renewed" });
    expect((await leaseOf(bench, lease.token))?.left_ms).toBeGreaterThan(55_000);
    release();
  });

  test("is refused after a takeover, and for a token nobody has", async () => {
    const { lease, id, release } = await heldLease(60_000);
    await takeAway(bench, id);
    const nobody = { token: "1", leaseMs: 60_000 };
    const results = await beatIfHeld(bench.store, [lease, nobody], [], 5_000);
    expect(results.map(({ state }) => state)).toEqual(["lost", "lost"]);
    release();
  });

  test("that finds the row locked is unknown, not lost", async () => {
    const { lease, release } = await heldLease(60_000);
    const session = await openSession(bench.url);
    await session.begin();
    await session.query("select 1 from holdfast.leases where token = $1 for update", [lease.token]);
    expect(await beatIfHeld(bench.store, [lease], [], 5_000)).toMatchObject([{ state: "unknown" }]);
    await session.rollback();
    await session.close();
    release();
  });

  test("that the database refuses is reported, and the next one keeps the lease", async () => {
    const held = makeHeldKind<null>({ lease: "3s" });
    const lost = collect(bench.hf, "lease.lost");
    const refused = waitForEvent(bench.hf, "trouble", ({ where }) => where === "heartbeat", { timeout: "15s" });
    await bench.db.script(`
      create function public.refuse() returns trigger language plpgsql as $$
        begin raise exception 'the disk is on fire'; end $$;`);
    workers.push(await bench.hf.work([held.kind]));
    const { id } = await bench.hf.enqueue(held.kind, null);
    const job = await held.started();
    await bench.db.script(
      "create trigger refuse before update on holdfast.leases for each row execute function public.refuse()",
    );
    expect(String((await refused).error)).toContain("the disk is on fire");
    await bench.db.script("drop trigger refuse on holdfast.leases");
    const before = await renewalsOf(bench, job.token);
    await until("renewals again", async () => (await renewalsOf(bench, job.token)) > before + 1);
    expect(job.signal.aborted).toBe(false);
    held.release();
    expect(await ended(bench.hf, id)).toMatchObject({ state: "done", claimCount: 1 });
    expect(lost.events).toEqual([]);
    lost.stop();
  });

  test("that never gets through: the run ends by its own clock, while nobody else has the job yet", async () => {
    const held = makeHeldKind<null>({ lease: "4s" });
    await bench.db.script(
      `create function public.refuse_some() returns trigger language plpgsql as $$
         begin if new.lease_ms = 4000 then raise exception 'no'; end if; return new; end $$;
       create trigger refuse_some before update on holdfast.leases
         for each row execute function public.refuse_some()`,
    );
    workers.push(await bench.hf.work([held.kind], { concurrency: 1 }));
    const { id } = await bench.hf.enqueue(held.kind, null);
    const lost = nextOf(bench.hf, "lease.lost", id);
    const job = await held.started();
    await lost;
    const { rows } = await bench.db.query("select token, state from holdfast.jobs where id = $1", [id]);
    await bench.db.script("drop trigger refuse_some on holdfast.leases");
    expect(rows).toEqual([{ token: job.token, state: "running" }]);
    expect(job.signal.reason).toMatchObject({ why: "lease-lost" });
    // The row would let them; the run was given up all the same.
    const session = await openSession(bench.url);
    await session.begin();
    expect(await caught(job.fence(session.client))).toMatchObject({ code: "HOLDFAST_LEASE_LOST" });
    await session.rollback();
    await session.close();
    expect(await caught(job.transaction(() => Promise.resolve()))).toMatchObject({ code: "HOLDFAST_LEASE_LOST" });
    held.release();
    expect(await ended(bench.hf, id)).toMatchObject({ state: "done", attempt: 1 });
  });

  describe("comes also for a lease that was written down while the loop went to sleep", () => {
    /** Writes a lease down in the moment between the loop's look and its word that it need not be woken. */
    function lateSource(first: LeaseId[], late: LeaseId, at: number): LeaseSource {
      const leases = [...first];
      let words = 0;
      return {
        held: () => [...leases],
        finished: () => [],
        expect(shortestLeaseMs) {
          // At its first word it beats anyway; after the second one it sleeps.
          if (shortestLeaseMs === at && ++words === 2) leases.push(late);
        },
      };
    }

    test.each([
      ["when nothing else is held", 0],
      ["when only a longer one is held", 60_000],
    ])(
      "%s",
      async (_, at) => {
        const long = await heldLease(60_000);
        const short = await heldLease(1_500);
        const heard: BeatResult[] = [];
        const gate = makeGate();
        const beats = startBeats(
          {
            store: bench.store,
            onBeat(results) {
              heard.push(...results);
              if (results.some(({ token }) => token === short.lease.token)) gate.open();
            },
            onMissed: (error) => expect.unreachable(String(error)),
          },
          lateSource(at === 0 ? [] : [long.lease], short.lease, at),
        );
        await gate.opened;
        expect(heard.find(({ token }) => token === short.lease.token)).toMatchObject({ state: "renewed" });
        await beats.stop();
        long.release();
        short.release();
      },
      10_000,
    );
  });
});
