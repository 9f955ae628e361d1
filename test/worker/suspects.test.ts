// What becomes of jobs whose worker died: told by events, and run alone even if the network is in the way.
import { randomUUID } from "node:crypto";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { randomToken } from "#src/shared/uuid.js";
import { claimSuspect } from "#src/store/jobs/claim.js";
import { openTest, type TestHoldfast } from "#src/testing/index.js";
import type { AnyJobKind } from "#src/job/define-job.js";
import type { Worker } from "#src/worker/worker.js";
import { ended, nextOf } from "../support/events.ts";
import { makeHeldKind, makeKind } from "../support/make.ts";
import { type Bench, TIERS, useHoldfast } from "../support/open-test.ts";
import { startTcpProxy, type TcpProxy } from "../support/tcp-proxy.ts";

const workers: Worker[] = [];
afterEach(async () => {
  await Promise.all(workers.splice(0).map((worker) => worker.stop()));
});

const makeSuspect = (bench: Bench, id: string, crashes = 1): Promise<unknown> =>
  bench.db.query("update holdfast.jobs set hold = 2, crash_count = $2 where id = $1", [id, crashes]);

describe.each(TIERS)("a worker died, %s", (tier) => {
  const bench = useHoldfast(tier);

  /** A suspect that a process which is gone by now had claimed for itself; it has crashed twice before. */
  async function leftAlone(kind: AnyJobKind): Promise<string> {
    const { id } = await bench.hf.enqueue(kind, null, { queue: "heavy" });
    await makeSuspect(bench, id, 2);
    const token = randomToken();
    const leases = JSON.stringify([{ kind: kind.kind, lease_ms: 1_000 }]);
    const jobs = await claimSuspect(bench.store, { token, workerId: randomUUID(), leases }, [kind.kind], true);
    expect(jobs).toMatchObject([{ id }]);
    return id;
  }

  /** Every client with a worker has a janitor; this one does not know the kinds in question. */
  const startJanitor = async (): Promise<void> => void workers.push(await bench.hf.work([makeKind()]));

  test("a job that crashed too often is buried, and whoever buries it says so", async () => {
    const id = await leftAlone(makeKind());
    const dead = nextOf(bench.hf, "job.dead", id);
    await startJanitor();
    expect(await dead).toMatchObject({
      queue: "heavy",
      attempt: 0,
      workerId: null,
      durationMs: null,
      error: { reason: "crashed", message: expect.stringContaining("crash 3 of 3") },
    });
    expect(await bench.hf.jobs.get(id)).toMatchObject({ state: "dead" });
  });

  test("a job that was to be cancelled is, and whoever does it says so", async () => {
    const id = await leftAlone(makeKind());
    expect(await bench.hf.jobs.cancel(id)).toBe("requested");
    const cancelled = nextOf(bench.hf, "job.cancelled", id);
    await startJanitor();
    expect(await cancelled).toMatchObject({ queue: "heavy", workerId: null, durationMs: null });
    expect(await bench.hf.jobs.get(id)).toMatchObject({ state: "cancelled" });
  });

  test("a suspect out of an old backlog waits for an empty process like any other", async () => {
    const kind = makeKind();
    const { id } = await bench.hf.enqueue(kind, null);
    await makeSuspect(bench, id, 0);
    const leases = JSON.stringify([{ kind: kind.kind, lease_ms: 1_000 }]);
    const beside = async (): Promise<unknown> =>
      await claimSuspect(bench.store, { token: randomToken(), workerId: randomUUID(), leases }, [kind.kind], false);
    const wasDue = (due: string, started: string): Promise<unknown> =>
      bench.db.query(
        `update holdfast.jobs set run_at = now() - $2::interval, started_at = now() - $3::interval where id = $1`,
        [id, due, started],
      );
    await wasDue("2 hours", "10 seconds");
    expect(await beside()).toEqual([]);
    await wasDue("2 hours", "6 minutes");
    expect(await beside()).toMatchObject([{ id }]);
  });

  test("the first in line is not hit again and again: a suspect that crashed alone waits for those that did not", async () => {
    const kind = makeKind();
    const first = await bench.hf.enqueue(kind, null);
    const second = await bench.hf.enqueue(kind, null);
    await makeSuspect(bench, first.id, 1);
    await makeSuspect(bench, second.id, 0);
    const leases = JSON.stringify([{ kind: kind.kind, lease_ms: 1_000 }]);
    const next = async (): Promise<unknown> =>
      await claimSuspect(bench.store, { token: randomToken(), workerId: randomUUID(), leases }, [kind.kind], true);
    expect(await next()).toMatchObject([{ id: second.id }]);
    expect(await next()).toMatchObject([{ id: first.id }]);
  });

  test("what a worker of this process left behind when it stopped is recovered by its neighbours", async () => {
    const kind = makeKind({ lease: "500ms", run: () => "ran" });
    // As long as this is there, the database takes no end of the job.
    await bench.db.script(`
      create function public.refuse() returns trigger language plpgsql as 'begin raise exception ''not now''; end';
      create trigger refuse before delete on holdfast.jobs for each row when (old.kind = '${kind.kind}')
        execute function public.refuse();`);
    const worker = await bench.hf.work([kind]);
    const { id } = await bench.hf.enqueue(kind, null);
    await nextOf(bench.hf, "lease.lost", id);
    await worker.stop();
    await bench.db.script("drop trigger refuse on holdfast.jobs");
    workers.push(await bench.hf.work([kind]));
    expect(await ended(bench.hf, id)).toMatchObject({ state: "done", result: "ran" });
  });
});

describe("the answer to the claim of a suspect is lost (server)", () => {
  const bench = useHoldfast("server");
  let proxy: TcpProxy;
  let hf: TestHoldfast;
  beforeAll(async () => {
    proxy = await startTcpProxy(bench.url);
    hf = await openTest({ database: proxy.through(bench.url) });
  });
  afterEach(() => proxy.onData(undefined));
  afterAll(async () => {
    await hf?.close();
    await proxy?.close();
  });

  async function enqueueSuspect(kind: AnyJobKind): Promise<string> {
    const { id } = await hf.enqueue(kind, null);
    await makeSuspect(bench, id);
    return id;
  }

  test("it was claimed: it has the process to itself all the same", async () => {
    const suspect = makeHeldKind<null>();
    const other = makeKind();
    const id = await enqueueSuspect(suspect.kind);
    const lost = proxy.loseReplyTo("claim_suspect");
    workers.push(await hf.work([suspect.kind, other], { concurrency: 5 }));
    await lost;
    const { token } = await suspect.started();
    const { rows } = await bench.db.query("select alone from holdfast.leases where token = $1", [token]);
    expect(rows).toEqual([{ alone: true }]);
    const beside = await hf.enqueue(other, null);
    await new Promise((resolve) => setTimeout(resolve, 700));
    expect(await bench.hf.jobs.get(beside.id)).toMatchObject({ state: "pending", claimCount: 0 });
    suspect.release();
    expect(await ended(bench.hf, id)).toMatchObject({ state: "done", claimCount: 1 });
    expect(await ended(bench.hf, beside.id)).toMatchObject({ state: "done" });
  });

  test("it was not claimed: the process is free again", async () => {
    const [suspect, other] = [makeKind(), makeKind()];
    const id = await enqueueSuspect(suspect);
    let cuts = 0;
    proxy.onData(({ direction, data }) =>
      direction === "to-server" && data.includes("claim_suspect") && ++cuts === 1 ? "cut" : "pass",
    );
    workers.push(await hf.work([suspect, other]));
    const beside = await hf.enqueue(other, null);
    expect(await ended(bench.hf, id)).toMatchObject({ state: "done", claimCount: 1 });
    expect(await ended(bench.hf, beside.id)).toMatchObject({ state: "done" });
    expect(cuts).toBeGreaterThan(1);
  });

  test("and the worker is stopped before it knows: its neighbours are not kept waiting", async () => {
    const [suspect, other] = [makeHeldKind<null>({ lease: "2s" }), makeKind()];
    const id = await enqueueSuspect(suspect.kind);
    // What was claimed cannot be asked for either.
    proxy.onData(({ direction, data }) =>
      direction === "to-server" && data.includes("unnest(l.job_ids)") ? "cut" : "pass",
    );
    const lost = proxy.loseReplyTo("claim_suspect");
    const worker = await hf.work([suspect.kind]);
    await lost;
    await worker.stop();
    proxy.onData(undefined);
    workers.push(await hf.work([other]));
    const beside = await hf.enqueue(other, null);
    expect(await ended(bench.hf, beside.id)).toMatchObject({ state: "done" });
    workers.push(await hf.work([suspect.kind]));
    await suspect.started();
    suspect.release();
    expect(await ended(bench.hf, id)).toMatchObject({ state: "done", claimCount: 2 });
  });
});
