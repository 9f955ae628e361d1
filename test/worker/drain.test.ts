// A worker that is asked to take no more jobs: what runs in it goes on, nothing new starts in it, others work as before,
// and it can be let loose again.
import { describe, expect, test } from "vitest";
import type { Holdfast } from "#src/client/client.js";
import type { AnyJobKind } from "#src/job/define-job.js";
import { ended, nextOf } from "../support/events.ts";
import { openSession, untilBlocks } from "../support/locks.ts";
import { makeHeldKind, makeKind } from "../support/make.ts";
import { TIERS, useHoldfast } from "../support/open-test.ts";

/** Enqueues until one is not taken: the worker has learnt of it. */
async function leftAlone(hf: Holdfast, kind: AnyJobKind): Promise<string> {
  let left = "";
  await expect
    .poll(async () => {
      const { id } = await hf.enqueue(kind, 1);
      left = id;
      return await hf.jobs.wait(id, { timeout: "400ms" }).then(
        () => "took it",
        () => "left it",
      );
    })
    .toBe("left it");
  return left;
}

describe.each(TIERS)("%s", (tier) => {
  const bench = useHoldfast(tier);

  test("a drained worker finishes what it has and starts nothing; another takes the rest", async () => {
    const held = makeHeldKind();
    const kind = makeKind();
    const first = await bench.hf.work([held.kind, kind], { name: "one", poll: "50ms" });
    const running = await bench.hf.enqueue(held.kind, 1);
    await held.started();
    expect(await bench.hf.workers.drain(first.id, { by: "ada" })).toEqual({ name: "one" });
    expect(await bench.hf.workers.drain(first.id, { by: "bob" })).toEqual({ name: "one" });
    const [info] = (await bench.hf.workers.list()).workers;
    expect(info).toMatchObject({ drainAskedBy: "ada", drainAskedAt: expect.any(Date) });
    const isEmpty = first.drain();

    const waiting = await leftAlone(bench.hf, kind);
    const second = await bench.hf.work([kind], { name: "two", poll: "50ms" });
    expect(await ended(bench.hf, waiting)).toMatchObject({ state: "done", attempt: 1 });
    await second.stop();

    held.release();
    expect(await ended(bench.hf, running.id)).toMatchObject({ state: "done", attempt: 1 });
    await isEmpty;
    const third = await bench.hf.enqueue(kind, 1);
    expect(await bench.hf.workers.resume(first.id)).toEqual({ name: "one" });
    expect(await ended(bench.hf, third.id)).toMatchObject({ state: "done" });
    await first.stop();
  });

  test("a worker that is not there, and what is no id, are refused", async () => {
    const nobody = "01a1e299-0e62-7000-b7d8-b9cc8b876cb7";
    await expect(bench.hf.workers.drain(nobody)).rejects.toMatchObject({ code: "HOLDFAST_NOT_FOUND" });
    await expect(bench.hf.workers.resume(nobody)).rejects.toMatchObject({ code: "HOLDFAST_NOT_FOUND" });
    await expect(bench.hf.workers.drain("one")).rejects.toMatchObject({ code: "HOLDFAST_OPTION_INVALID" });
  });
});

describe("two processes' clients", () => {
  const bench = useHoldfast("server");

  test("what a claim brings that was on its way when the worker was drained is given back, not started", async () => {
    const kind = makeHeldKind({ attempts: 3 });
    const worker = await bench.hf.work([kind.kind], { poll: "50ms" });
    const [holder, watcher] = [await openSession(bench.url), await openSession(bench.url)];
    // A claim that takes its time: it writes a lease.
    await holder.begin();
    await holder.query("lock table holdfast.leases in share mode");
    // From SQL, so that nothing is handed over.
    const { rows } = await watcher.query<{ id: string }>("select id from holdfast.enqueue($1)", [kind.kind.kind]);
    const { id } = rows[0]!;
    await untilBlocks(watcher, holder);
    await worker.drain();
    expect(worker.running).toBe(0);
    const released = nextOf(bench.hf, "job.released", id);
    await holder.commit();
    await released;
    expect(kind.runs).toEqual([]);
    expect(await bench.hf.jobs.get(id)).toMatchObject({ state: "pending", attempt: 0 });
    const other = await bench.hf.work([kind.kind], { poll: "50ms" });
    await kind.started();
    kind.release();
    expect(await ended(bench.hf, id)).toMatchObject({ state: "done", attempt: 1 });
    await Promise.all([worker.stop(), other.stop(), holder.close(), watcher.close()]);
  });

  test("a worker is drained and resumed from elsewhere, told by a notification", async () => {
    const elsewhere = await bench.another();
    const kind = makeKind();
    const worker = await bench.hf.work([kind], { poll: "50ms" });
    await elsewhere.workers.drain(worker.id);
    await leftAlone(bench.hf, kind);
    await elsewhere.workers.resume(worker.id);
    await expect.poll(async () => (await bench.hf.jobs.count({ kind: kind.kind, status: "ready" })).count).toBe(0);
    await worker.stop();
  });
});
