import { describe, expect, test } from "vitest";
import { uuidv7 } from "#src/shared/uuid.js";
import { runDue } from "#src/testing/index.js";
import { ended } from "../support/events.ts";
import { caught, makeKind } from "../support/make.ts";
import { TIERS, useHoldfast } from "../support/open-test.ts";

describe.each(TIERS)("dead jobs, %s", (tier) => {
  const bench = useHoldfast(tier);

  test("retry gives one a full budget, and its failures stay on record", async () => {
    let isRepaired = false;
    const kind = makeKind({
      attempts: 2,
      backoff: ["0s"],
      run: (job) => {
        if (!isRepaired) throw new Error(`failure ${job.attempt}`);
        return "repaired";
      },
    });
    const { id } = await bench.hf.enqueue(kind, 1);
    await runDue(bench.hf, [kind]);
    expect(await bench.hf.jobs.get(id)).toMatchObject({ state: "dead", attempt: 2, claimCount: 2 });
    await bench.hf.jobs.retry(id);
    expect(await bench.hf.jobs.get(id)).toMatchObject({ state: "pending", attempt: 0, claimCount: 2 });
    await runDue(bench.hf, [kind]);
    expect(await bench.hf.jobs.get(id)).toMatchObject({ state: "dead", attempt: 2, claimCount: 4 });
    isRepaired = true;
    await bench.hf.jobs.retry(id);
    await runDue(bench.hf, [kind]);
    expect(await bench.hf.jobs.get(id)).toMatchObject({ state: "done", attempt: 1, result: "repaired" });
    const attempts = await bench.hf.jobs.attempts(id);
    expect(attempts.map(({ attempt, claimCount, outcome }) => [attempt, claimCount, outcome])).toEqual([
      [1, 1, "retry"],
      [2, 2, "dead"],
      [1, 3, "retry"],
      [2, 4, "dead"],
    ]);
  });

  test("retry starts it at once where a worker waits", async () => {
    let isRepaired = false;
    const kind = makeKind({
      attempts: 1,
      run: () => {
        if (!isRepaired) throw new Error("no");
      },
    });
    const worker = await bench.hf.work([kind], { poll: "1m" });
    const { id } = await bench.hf.enqueue(kind, 1);
    expect(await ended(bench.hf, id)).toMatchObject({ state: "dead" });
    isRepaired = true;
    const began = performance.now();
    await bench.hf.jobs.retry(id);
    expect(await ended(bench.hf, id)).toMatchObject({ state: "done" });
    expect(performance.now() - began).toBeLessThan(5_000);
    await worker.stop();
  });

  test("retry of a job that is not dead is refused with its state", async () => {
    const kind = makeKind();
    const { id } = await bench.hf.enqueue(kind, 1);
    expect(await caught(bench.hf.jobs.retry(id))).toMatchObject({
      code: "HOLDFAST_STATE_CONFLICT",
      message: `Job ${id} is pending and cannot be retried.`,
    });
    await runDue(bench.hf, [kind]);
    expect(await caught(bench.hf.jobs.retry(id))).toMatchObject({ message: expect.stringContaining("is done") });
    expect(await caught(bench.hf.jobs.retry(uuidv7()))).toMatchObject({ code: "HOLDFAST_NOT_FOUND" });
  });

  const dying = makeKind({
    attempts: 1,
    run: () => {
      throw new Error("no");
    },
  });

  test("discard takes one off the list of dead ones, and leaves it readable", async () => {
    const { id } = await bench.hf.enqueue(dying, { n: 1 });
    await runDue(bench.hf, [dying]);
    expect((await bench.hf.jobs.list({ state: "dead", kind: dying.kind })).jobs.map((job) => job.id)).toContain(id);
    await bench.hf.jobs.discard(id);
    expect((await bench.hf.jobs.list({ state: "dead", kind: dying.kind })).jobs.map((job) => job.id)).not.toContain(id);
    expect(await bench.hf.jobs.get(id)).toMatchObject({
      state: "dead",
      payload: { n: 1 },
      lastError: { message: "no" },
    });
    expect(await caught(bench.hf.jobs.discard(id))).toMatchObject({ code: "HOLDFAST_STATE_CONFLICT" });
    expect(await caught(bench.hf.jobs.retry(id))).toMatchObject({ code: "HOLDFAST_STATE_CONFLICT" });
  });

  test("discard of a job that is not dead is refused", async () => {
    const { id } = await bench.hf.enqueue(dying, 1, { delay: "1h" });
    expect(await caught(bench.hf.jobs.discard(id))).toMatchObject({
      message: `Job ${id} is pending and cannot be discarded.`,
      hint: expect.stringContaining("cancel"),
    });
  });
});
