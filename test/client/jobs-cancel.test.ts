import { describe, expect, test } from "vitest";
import { uuidv7 } from "#src/shared/uuid.js";
import { runDue } from "#src/testing/index.js";
import { ended, nextOf } from "../support/events.ts";
import { aborted, caught, makeHeldKind, makeKind } from "../support/make.ts";
import { TIERS, useHoldfast } from "../support/open-test.ts";

describe.each(TIERS)("cancel, %s", (tier) => {
  const bench = useHoldfast(tier);

  test("of a job that waits ends it at once: it never runs, and stays readable", async () => {
    let runs = 0;
    const kind = makeKind({ run: () => void (runs += 1) });
    const { id } = await bench.hf.enqueue(kind, { n: 1 });
    expect(await bench.hf.jobs.cancel(id)).toBe("cancelled");
    const job = await bench.hf.jobs.get(id);
    expect(job).toMatchObject({ state: "cancelled", payload: { n: 1 }, attempt: 0, result: null });
    expect(job?.finishedAt).toBeInstanceOf(Date);
    expect(await runDue(bench.hf, [kind])).toMatchObject({ runs: 0 });
    expect(runs).toBe(0);
  });

  test("of a job that waits for its next try ends it, and its failures stay on record", async () => {
    const kind = makeKind({
      run: () => {
        throw new Error("flaky");
      },
    });
    const { id } = await bench.hf.enqueue(kind, 1);
    await runDue(bench.hf, [kind]);
    expect(await bench.hf.jobs.cancel(id)).toBe("cancelled");
    expect(await bench.hf.jobs.get(id)).toMatchObject({ state: "cancelled", lastError: { message: "flaky" } });
    expect(await bench.hf.jobs.attempts(id)).toHaveLength(1);
  });

  test("of a job that runs asks it to stop, and no retry follows", async () => {
    const held = makeHeldKind({
      then: () => {
        throw new Error("stopped in the middle");
      },
    });
    const worker = await bench.hf.work([held.kind]);
    const { id } = await bench.hf.enqueue(held.kind, 1);
    const run = await held.started();
    const { signal } = run;
    const reported = nextOf(bench.hf, "job.cancelled", id);
    expect(await bench.hf.jobs.cancel(id)).toBe("requested");
    expect((await bench.hf.jobs.get(id))?.cancelRequestedAt).toBeInstanceOf(Date);
    await aborted(signal);
    expect(signal.reason).toMatchObject({ name: "JobAborted", why: "cancelled" });
    held.release();
    await reported;
    expect(await ended(bench.hf, id)).toMatchObject({
      state: "cancelled",
      lastError: { message: "stopped in the middle" },
    });
    await worker.stop();
    expect(held.runs).toHaveLength(1);
  });

  test("of a job that runs and finishes all the same leaves it done", async () => {
    const held = makeHeldKind({ then: () => "finished" });
    const worker = await bench.hf.work([held.kind]);
    const { id } = await bench.hf.enqueue(held.kind, 1);
    await held.started();
    await bench.hf.jobs.cancel(id);
    held.release();
    expect(await ended(bench.hf, id)).toMatchObject({ state: "done", result: "finished" });
    await worker.stop();
  });

  test("asked for twice is asked for once", async () => {
    const held = makeHeldKind({
      then: () => {
        throw new Error("stopped");
      },
    });
    const worker = await bench.hf.work([held.kind]);
    const { id } = await bench.hf.enqueue(held.kind, 1);
    await held.started();
    await bench.hf.jobs.cancel(id);
    const at = (await bench.hf.jobs.get(id))?.cancelRequestedAt;
    expect(await bench.hf.jobs.cancel(id)).toBe("requested");
    expect((await bench.hf.jobs.get(id))?.cancelRequestedAt).toEqual(at);
    held.release();
    await ended(bench.hf, id);
    await worker.stop();
  });

  test("of a job that is over, unknown or no job at all says so", async () => {
    const kind = makeKind();
    const { id } = await bench.hf.enqueue(kind, 1);
    await runDue(bench.hf, [kind]);
    expect(await caught(bench.hf.jobs.cancel(id))).toMatchObject({
      code: "HOLDFAST_STATE_CONFLICT",
      message: `Job ${id} is done and cannot be cancelled.`,
    });
    expect(await caught(bench.hf.jobs.cancel(uuidv7()))).toMatchObject({ code: "HOLDFAST_NOT_FOUND" });
    expect(await caught(bench.hf.jobs.cancel("7"))).toMatchObject({ code: "HOLDFAST_OPTION_INVALID" });
  });
});

describe("cancel from another process", () => {
  const bench = useHoldfast("server");

  test("reaches a job that runs, by a notification or by the next beat", async () => {
    const other = await bench.another();
    const held = makeHeldKind({
      lease: "3s",
      then: () => {
        throw new Error("stopped");
      },
    });
    const worker = await bench.hf.work([held.kind], { concurrency: 3 });
    const results = await bench.hf.enqueueMany(held.kind, [{ payload: 1 }, { payload: 2 }, { payload: 3 }]);
    await held.started(3);
    const victim = results[1]!.id;
    const run = held.runs.find((each) => each.id === victim)!;
    expect(await other.jobs.cancel(victim)).toBe("requested");
    await aborted(run.signal);
    // Only that one.
    expect(held.runs.filter(({ signal }) => signal.aborted).map(({ id }) => id)).toEqual([victim]);
    held.release();
    expect(await ended(other, victim)).toMatchObject({ state: "cancelled" });
    await worker.stop();
  });
});
