import { describe, expect, test } from "vitest";
import { uuidv7 } from "#src/shared/uuid.js";
import { runDue } from "#src/testing/index.js";
import { caught, makeHeldKind, makeKind } from "../support/make.ts";
import { TIERS, useHoldfast } from "../support/open-test.ts";

describe.each(TIERS)("jobs.wait, %s", (tier) => {
  const bench = useHoldfast(tier);

  test("resolves with the job when it is done, also when it was done long ago", async () => {
    const kind = makeKind({ run: () => ({ answer: 42 }) });
    const { id } = await bench.hf.enqueue(kind, 1);
    const waited = bench.hf.jobs.wait(id);
    await runDue(bench.hf, [kind]);
    expect(await waited).toMatchObject({ id, state: "done", result: { answer: 42 } });
    expect(await bench.hf.jobs.wait(id)).toMatchObject({ state: "done" });
  });

  test("resolves when the job is dead or cancelled: it is over", async () => {
    const kind = makeKind({
      attempts: 1,
      run: () => {
        throw new Error("no");
      },
    });
    const dead = await bench.hf.enqueue(kind, 1);
    const cancelled = await bench.hf.enqueue(kind, 2, { delay: "1h" });
    const waited = Promise.all([bench.hf.jobs.wait(dead.id), bench.hf.jobs.wait(cancelled.id)]);
    await bench.hf.jobs.cancel(cancelled.id);
    await runDue(bench.hf, [kind]);
    expect((await waited).map(({ state }) => state)).toEqual(["dead", "cancelled"]);
  });

  test("gives up after its timeout, and says how the job stands", async () => {
    const held = makeHeldKind();
    const worker = await bench.hf.work([held.kind]);
    const { id } = await bench.hf.enqueue(held.kind, 1);
    await held.started();
    expect(await caught(bench.hf.jobs.wait(id, { timeout: "50ms" }))).toMatchObject({
      code: "HOLDFAST_WAIT_TIMEOUT",
      message: `Job ${id} is still running after 50ms.`,
    });
    held.release();
    await bench.hf.jobs.wait(id, { timeout: "10s" });
    await worker.stop();
  });

  test("for a job that does not exist says so", async () => {
    expect(await caught(bench.hf.jobs.wait(uuidv7()))).toMatchObject({ code: "HOLDFAST_NOT_FOUND" });
    // @ts-expect-error a bare number is no duration
    expect(await caught(bench.hf.jobs.wait(uuidv7(), { timeout: 5 }))).toMatchObject({
      code: "HOLDFAST_OPTION_INVALID",
    });
  });
});

describe("jobs.wait in another process", () => {
  const bench = useHoldfast("server");

  test("sees the end of a job that runs elsewhere", async () => {
    const kind = makeKind({ run: () => "elsewhere" });
    const other = await bench.another();
    const { id } = await other.enqueue(kind, 1);
    const waited = other.jobs.wait(id, { timeout: "10s" });
    await runDue(bench.hf, [kind]);
    expect(await waited).toMatchObject({ state: "done", result: "elsewhere" });
  });
});
