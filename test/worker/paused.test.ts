// Pausing a queue stops its jobs from being started, in every process, and costs the others nothing.
import { describe, expect, test } from "vitest";
import { runDue } from "#src/testing/run-due.js";
import { ended, times } from "../support/events.ts";
import { makeHeldKind, makeKind, uniqueName } from "../support/make.ts";
import { TIERS, useHoldfast } from "../support/open-test.ts";

describe.each(TIERS)("a paused queue (%s)", (tier) => {
  const bench = useHoldfast(tier);

  test("starts nothing, lets what runs go on, and starts everything in order when it is resumed", async () => {
    const queue = uniqueName("queue");
    const held = makeHeldKind({ queue });
    const ran: number[] = [];
    const kind = makeKind<number>({ queue, run: (job) => void ran.push(job.payload) });
    const other = makeKind({ queue: uniqueName("other") });
    const running = await bench.hf.enqueue(held.kind, 1);
    const worker = await bench.hf.work([held.kind, kind, other], { concurrency: 2, poll: "50ms" });
    await held.started();
    expect(await bench.hf.queues.pause(queue, { by: "somebody" })).toBe(true);
    expect(await bench.hf.queues.pause(queue)).toBe(false);
    const jobs = await bench.hf.enqueueMany(
      kind,
      Array.from({ length: 120 }, (_, n) => ({ payload: n })),
    );
    // Others are not kept waiting by what is set aside.
    const { id } = await bench.hf.enqueue(other, 1);
    expect(await ended(bench.hf, id)).toMatchObject({ state: "done" });
    held.release();
    expect(await ended(bench.hf, running.id)).toMatchObject({ state: "done" });
    await until(async () => (await aside(queue)) === 120);
    expect(ran).toEqual([]);
    expect(await bench.hf.jobs.get(jobs[0]!.id)).toMatchObject({ state: "pending", attempt: 0 });
    await bench.hf.janitor.run("measure-queues");
    const info = (await bench.hf.queues.list()).find((found) => found.queue === queue);
    expect(info).toMatchObject({ paused: 120, ready: 0, oldestReadyAt: null, pausedBy: "somebody" });

    const done = times(bench.hf, "job.done", 120, (event) => event.queue === queue);
    expect(await bench.hf.queues.resume(queue)).toBe(true);
    await done;
    expect(ran.toSorted((left, right) => left - right)).toEqual(Array.from({ length: 120 }, (_, n) => n));
    expect(await bench.hf.queues.resume(queue)).toBe(false);
    await worker.stop();
  });

  test("stays paused for a worker that starts later; a job in it can be cancelled", async () => {
    const queue = uniqueName("queue");
    const kind = makeKind({ queue });
    await bench.hf.queues.pause(queue);
    const [first, second] = await bench.hf.enqueueMany(kind, [{ payload: 1 }, { payload: 2 }]);
    const worker = await bench.hf.work([kind], { poll: "50ms" });
    await until(async () => (await aside(queue)) === 2);
    expect(await bench.hf.jobs.cancel(first!.id)).toBe("cancelled");
    await worker.stop();
    await bench.hf.queues.resume(queue);
    await runDue(bench.hf, [kind]);
    expect(await bench.hf.jobs.get(second!.id)).toMatchObject({ state: "done", attempt: 1 });
  });

  test("a resume that was cut short is finished by a chore", async () => {
    const queue = uniqueName("queue");
    const kind = makeKind({ queue });
    const { id } = await bench.hf.enqueue(kind, 1);
    await bench.db.query("update holdfast.jobs set hold = 5 where id = $1", [id]);
    expect(await bench.hf.janitor.run("let-in")).toMatchObject([{ ran: true, rows: { "let-in": 1 } }]);
    await runDue(bench.hf, [kind]);
    expect(await bench.hf.jobs.get(id)).toMatchObject({ state: "done" });
  });

  test("a resume that was cut short is finished although another queue stays paused with very much set aside", async () => {
    const [big, small] = [uniqueName("a"), uniqueName("b")];
    await bench.hf.queues.pause(big);
    await bench.hf.enqueueMany(
      makeKind({ queue: big }),
      Array.from({ length: 10_000 }, (_, n) => ({ payload: n })),
    );
    await bench.hf.enqueue(makeKind({ queue: small }), 1);
    await bench.db.query("update holdfast.jobs set hold = 5 where queue = any($1)", [[big, small]]);
    expect(await bench.hf.janitor.run("let-in")).toMatchObject([{ ran: true, rows: { "let-in": 1 } }]);
    expect([await aside(big), await aside(small)]).toEqual([10_000, 0]);
    await bench.db.query("delete from holdfast.jobs where queue = any($1)", [[big, small]]);
  });

  const aside = async (queue: string): Promise<number> =>
    (
      await bench.db.query<{ n: number }>(
        "select count(*)::integer as n from holdfast.jobs where queue = $1 and hold in (5, 6)",
        [queue],
      )
    ).rows[0]!.n;
});

async function until(isTrue: () => Promise<boolean>): Promise<void> {
  const deadline = Date.now() + 15_000;
  while (!(await isTrue())) {
    if (Date.now() > deadline) throw new Error("It did not come true in time.");
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
